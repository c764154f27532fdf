#include "onehop/lattice/hmc.h"

#include "python/bindings/bindings.h"

using onehop::lattice::Gauge;
using onehop::lattice::Hmc;
using onehop::lattice::Integrator;

void bind_lattice_hmc(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Hmc>(module, "LatticeHmc",
                  "Hybrid Monte Carlo for the Wilson gauge action.\n\n"
                  "Parameters\n----------\n"
                  "gauge : LatticeGauge\n    Initial field, which is copied.\n"
                  "beta : float\n    Inverse coupling, 0 to 1e6.\n"
                  "length : float\n    Length of a trajectory, above 0.\n"
                  "steps : int\n    Number of integrator steps per trajectory.\n"
                  "leapfrog : bool\n    Use the leapfrog integrator instead of Omelyan's.\n"
                  "seed : int\n    Seed of momenta and decisions.")
      .def(
          "__init__",
          [](Hmc* self, const Gauge& gauge, double beta, double length, int steps, bool leapfrog, std::uint64_t seed) {
            const nb::gil_scoped_release released;
            new (self) Hmc(gauge, {beta, length, steps, leapfrog ? Integrator::leapfrog : Integrator::omelyan, seed});
          },
          "gauge"_a, "beta"_a, "length"_a, "steps"_a, "leapfrog"_a, "seed"_a)
      .def(
          "run",
          [](Hmc& hmc, std::uint32_t number) {
            onehop::lattice::Trajectory done;
            {
              const nb::gil_scoped_release released;
              done = hmc.run(number);
            }
            return nb::make_tuple(done.delta_h, done.accepted);
          },
          "number"_a, nb::sig("def run(self, number: int) -> tuple[float, bool]"),
          "Run trajectory `number`; return the change of H, and whether it was accepted. Collective.")
      .def(
          "reverse",
          [](Hmc& hmc, std::uint32_t number) {
            onehop::lattice::Reversal found;
            {
              const nb::gil_scoped_release released;
              found = hmc.reverse(number);
            }
            return nb::make_tuple(found.delta_h, found.links);
          },
          "number"_a, nb::sig("def reverse(self, number: int) -> tuple[float, float]"),
          "Run a trajectory forwards and backwards, and restore the field. Returns the remaining differences of H and "
          "of the "
          "links. Collective.")
      .def("copy_to", &Hmc::copy_to, "gauge"_a, release(), "Copy the links to a gauge field. Collective.");
}
