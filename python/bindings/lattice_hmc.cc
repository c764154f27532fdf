#include "onehop/lattice/hmc.h"

#include "python/bindings/arrays.h"

using onehop::lattice::Gauge;
using onehop::lattice::Hmc;
using onehop::lattice::Integrator;

void bind_lattice_hmc(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Hmc>(module, "LatticeHmc", "Hybrid Monte Carlo for the Wilson gauge action.")
      .def(
          "__init__",
          [](Hmc* self, const Gauge& gauge, double beta, double length, int steps, bool leapfrog, std::uint64_t seed) {
            new (self) Hmc(gauge, {beta, length, steps, leapfrog ? Integrator::leapfrog : Integrator::omelyan, seed});
          },
          "gauge"_a, "beta"_a, "length"_a, "steps"_a, "leapfrog"_a, "seed"_a, release())
      .def(
          "run",
          [](Hmc& hmc, std::uint32_t number) {
            const auto done = hmc.run(number);
            return std::tuple(done.delta_h, done.accepted);
          },
          "number"_a, release(),
          "Run trajectory `number`; return the change of H, and whether it was accepted. Collective.")
      .def(
          "reverse",
          [](Hmc& hmc, std::uint32_t number) {
            const auto found = hmc.reverse(number);
            return std::tuple(found.delta_h, found.links);
          },
          "number"_a, release())
      .def("copy_to", &Hmc::copy_to, "gauge"_a, release(), "Copy the links to a gauge field. Collective.");
}
