#include "onehop/poisson/poisson.h"

#include "python/bindings/arrays.h"

using onehop::poisson::Poisson;
using onehop::poisson::PoissonBlock;
using onehop::poisson::PoissonControl;
using onehop::poisson::PoissonOptions;
using onehop::poisson::PoissonResidual;
using onehop::poisson::PoissonResult;
using onehop::poisson::PoissonSpec;
using onehop::poisson::PoissonTimes;

namespace {

using Extents = std::array<std::int64_t, 2>;
NumberArray<double> lattice_array(std::vector<double> values, const Extents& extents) {
  return as_array(std::move(values), {static_cast<std::size_t>(extents[0]), static_cast<std::size_t>(extents[1])});
}

// Checks for signals, and calls the progress callback if there is one.
void tell(const nb::object& progress, const PoissonResidual& residual) {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (!progress.is_none()) progress(residual.iteration, residual.norm);
}

PoissonResult solve(Poisson& poisson, std::int64_t iterations, std::int64_t residual_every, double tolerance,
                    const nb::object& progress) {
  const PoissonControl control{iterations, residual_every, tolerance,
                               [&progress](const PoissonResidual& residual) { tell(progress, residual); }};
  const nb::gil_scoped_release released;
  return poisson.solve(control);
}

NumberArray<double> gather(const Poisson& poisson, const Memory& block) {
  return lattice_array(released([&] { return poisson.gather(numbers<double>(block)); }), poisson.spec().extents);
}

}  // namespace

void bind_poisson(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<PoissonSpec>(
      module, "PoissonSpec",
      "A Poisson problem on a periodic two-dimensional lattice, and the grid of ranks that solves it.")
      .def(
          "__init__",
          [](PoissonSpec* self, Extents extents, std::array<int, 2> grid, double mass, std::uint64_t seed) {
            new (self) PoissonSpec{extents, grid, mass, seed};
          },
          "extents"_a, "grid"_a, "mass"_a, "seed"_a)
      .def_ro("extents", &PoissonSpec::extents, "Sites of the lattice per dimension.")
      .def_ro("grid", &PoissonSpec::grid, "Ranks per dimension.")
      .def_ro("mass", &PoissonSpec::mass, "Mass term; a larger one converges faster.")
      .def_ro("seed", &PoissonSpec::seed, "Seed of the random right-hand side.");
  nb::class_<PoissonBlock>(module, "PoissonBlock", "The block of one rank of the lattice.")
      .def_ro("start", &PoissonBlock::start, "First site of the block.")
      .def_ro("extents", &PoissonBlock::extents, "Sites of the block per dimension.");
  nb::class_<PoissonTimes>(module, "PoissonTimes", "The times of one rank in seconds per iteration.")
      .def_ro("start", &PoissonTimes::start, "Time to pack and send the faces.")
      .def_ro("interior", &PoissonTimes::interior, "Time to update the interior while the faces travel.")
      .def_ro("wait", &PoissonTimes::wait, "Time to wait for the faces and unpack them.")
      .def_ro("boundary", &PoissonTimes::boundary, "Time to update the boundary.")
      .def_ro("residual", &PoissonTimes::residual, "Time to sum the residual over the ranks.");
  nb::class_<PoissonResult>(module, "PoissonResult", "The result of a solve.")
      .def_ro("iterations", &PoissonResult::iterations, "Number of iterations.")
      .def_ro("reached_tolerance", &PoissonResult::reached_tolerance, "Whether the residual reached the tolerance.")
      .def_ro("seconds", &PoissonResult::seconds, "Time for all iterations.")
      .def_ro("times", &PoissonResult::times, "Times of this rank per iteration.")
      .def_prop_ro(
          "history",
          [](const PoissonResult& result) {
            nb::list history;
            for (const PoissonResidual& one : result.history) history.append(nb::make_tuple(one.iteration, one.norm));
            return history;
          },
          nb::sig("def history(self) -> list[tuple[int, float]]"),
          "Pairs (iteration, |b - M x|); the last one is that of the solution.");
  nb::class_<Poisson>(module, "Poisson",
                      "Jacobi's method for the Poisson equation on a grid of ranks. The constructor is collective.")
      .def(
          "__init__",
          [](Poisson* self, const onehop::Group& group, const PoissonSpec& spec, int buffers, std::int64_t enlargement,
             const std::string& transport) {
            const PoissonOptions options{buffers, enlargement, onehop::transport_from_string(transport), {}};
            const nb::gil_scoped_release released;
            new (self) Poisson(group, spec, options);
          },
          "group"_a, "spec"_a, "buffers"_a, "enlargement"_a, "transport"_a)
      .def(
          "set_source", [](Poisson& poisson, const Memory& block) { poisson.set_source(numbers<double>(block)); },
          "block"_a, release(),
          "Set the right-hand side: this rank's block of float64 in C order. Collective. Raises BadInput for a wrong "
          "length "
          "or values that are not finite or above 1e140.")
      .def("solve", &solve, "iterations"_a, "residual_every"_a, "tolerance"_a, "progress"_a = nb::none(),
           "Solve from x = 0. Collective.\n\n"
           "Parameters\n----------\n"
           "iterations : int\n    Maximum number of iterations.\n"
           "residual_every : int\n    Number of iterations between two residuals.\n"
           "tolerance : float\n    Stop when |b - M x| <= tolerance |b|; 0: run all iterations.\n"
           "progress : callable, optional\n    Called as progress(iteration, residual); may raise to end the solve.")
      .def_prop_ro(
          "solution", [](const Poisson& p) { return lattice_array(p.solution(), p.block().extents); },
          nb::rv_policy::automatic, "This rank's block of the solution.")
      .def_prop_ro(
          "source", [](const Poisson& p) { return lattice_array(p.source(), p.block().extents); },
          nb::rv_policy::automatic, "This rank's block of the right-hand side.")
      .def("gather", &gather, "block"_a,
           "Return the whole lattice on every rank, from the block of each rank. Collective.")
      .def_prop_ro("spec", &Poisson::spec, "The problem.")
      .def_prop_ro("block", &Poisson::block, "This rank's block of the lattice.")
      .def_prop_ro("bytes_sent", &Poisson::bytes_sent,
                   "Bytes that this rank sends in one iteration, including padding.");
  module.def("poisson_grid", &onehop::poisson::poisson_grid, "extents"_a, "ranks"_a,
             "Return the grid of ranks with the shortest faces. Raises BadInput if no grid fits.");
  module.def("poisson_faces", &onehop::poisson::poisson_faces, "spec"_a, "enlargement"_a = 1,
             "Return the schedule of one iteration. Faces are padded to `enlargement` times their length.");
}
