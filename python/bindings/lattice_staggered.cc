#include <nanobind/ndarray.h>
#include <nanobind/stl/complex.h>

#include "onehop/lattice/staggered.h"
#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"

using onehop::lattice::precision_from_string;
using onehop::lattice::SolverOptions;
using onehop::lattice::SolverReport;
using onehop::lattice::Staggered;
using onehop::lattice::StaggeredOptions;
using onehop::lattice::StaggeredPhases;
using onehop::lattice::StaggeredSolve;

namespace {

using Number = std::complex<double>;

std::span<const Number> numbers(const Memory& memory) {
  return {reinterpret_cast<const Number*>(memory.bytes().data()), memory.bytes().size() / sizeof(Number)};
}

// Converts fields stored one after the other to an array of shape (fields, t, z, y, x, 3).
nb::ndarray<nb::numpy, Number> as_fields(std::vector<Number> values, const Staggered& staggered) {
  auto* held = new std::vector<Number>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
  const auto block = staggered.geometry().block();
  std::vector<std::size_t> shape(block.rbegin(), block.rend());
  shape.push_back(3);
  std::size_t length = 1;
  for (const std::size_t extent : shape) length *= extent;
  shape.insert(shape.begin(), held->size() / length);
  return {held->data(), shape.size(), shape.data(), owner};
}

template <class Function>
auto without_gil(const Staggered& staggered, Function&& function) {
  std::vector<Number> found;
  {
    const nb::gil_scoped_release released;
    found = function();
  }
  return as_fields(std::move(found), staggered);
}

nb::tuple solve(Staggered& staggered, const Memory& source, const std::vector<double>& masses, SolverOptions options,
                const nb::object& progress) {
  if (!progress.is_none()) {
    options.progress = [&progress](std::int64_t done, double residual) {
      const nb::gil_scoped_acquire acquired;
      progress(done, residual);
    };
  }
  StaggeredSolve found;
  {
    const nb::gil_scoped_release released;
    found = masses.size() == 1 ? staggered.solve(numbers(source), masses[0], options)
                               : staggered.solve_masses(numbers(source), masses, options);
  }
  return nb::make_tuple(as_fields(std::move(found.solutions), staggered), std::move(found.report));
}

void bind_solver_options(nb::module_& module) {
  nb::class_<SolverOptions>(module, "LatticeSolverOptions",
                            "The options of a solve; see `onehop.lattice.Staggered.solve`.")
      .def(nb::init<>())
      .def_rw("tolerance", &SolverOptions::tolerance, "Relative residual at which the solve ends.")
      .def_rw("iterations", &SolverOptions::iterations, "Maximum number of iterations.")
      .def_prop_rw(
          "precision", [](const SolverOptions& o) { return std::string(to_string(o.precision)); },
          [](SolverOptions& o, const std::string& name) { o.precision = precision_from_string(name); },
          "Precision of the solution.")
      .def_prop_rw(
          "sloppy_precision", [](const SolverOptions& o) { return std::string(to_string(o.sloppy_precision)); },
          [](SolverOptions& o, const std::string& name) { o.sloppy_precision = precision_from_string(name); },
          "Precision of most iterations.")
      .def_rw("reproducible", &SolverOptions::reproducible, "Give the same bits on every number of ranks.")
      .def_rw("half_halo", &SolverOptions::half_halo, "Send the halo of sloppy iterations as 16-bit numbers.");
}

}  // namespace

void bind_lattice_staggered(nb::module_& module) {
  module.def(
      "lattice_multiply_staggered_phases",
      [](const nb::ndarray<Number, nb::numpy, nb::c_contig, nb::device::cpu>& links,
         const onehop::lattice::Geometry& geometry, int rank, int length, bool antiperiodic, bool milc_phases) {
        const nb::gil_scoped_release released;
        onehop::lattice::multiply_staggered_phases({links.data(), links.size()}, geometry, rank, length, antiperiodic,
                                                   milc_phases ? StaggeredPhases::milc : StaggeredPhases::standard);
      },
      "links"_a, "geometry"_a, "rank"_a, "length"_a, "antiperiodic"_a, "milc_phases"_a,
      "Multiplies a rank's block of links with the staggered phases, in place.");
  bind_solver_options(module);
  nb::class_<SolverReport>(module, "LatticeSolverReport",
                           "The report of a solve. Times, flops and bytes are those of this rank.")
      .def_ro("iterations", &SolverReport::iterations, "Number of iterations.")
      .def_ro("reliable_updates", &SolverReport::reliable_updates,
              "Number of times that the residual was recomputed in the outer precision.")
      .def_ro("residuals", &SolverReport::residuals, "|b - M x| / |b| of each solution.")
      .def_prop_ro("true_residual", &SolverReport::worst_residual, "Largest of the residuals.")
      .def_ro("converged", &SolverReport::converged, "Whether every residual reached the tolerance.")
      .def_ro("seconds", &SolverReport::seconds, "Time of the solve.")
      .def_ro("communication_seconds", &SolverReport::communication_seconds,
              "Time that the solve spent in communication.")
      .def_ro("flops", &SolverReport::flops, "Floating-point operations.")
      .def_ro("bytes", &SolverReport::bytes, "Bytes that these operations read and wrote.");
  nb::class_<Staggered>(
      module, "LatticeStaggered",
      "The staggered operator M = 2 m + D of a gauge field, or of fat and long links. Fields are "
      "complex128 of this rank's block in lexicographic order, three numbers per site, several fields one "
      "after the other. Methods that take fields are collective.")
      .def(
          "__init__",
          [](Staggered* self, const onehop::lattice::Gauge& gauge, bool antiperiodic, int lanes, int threads,
             bool milc_phases) {
            const nb::gil_scoped_release released;
            new (self)
                Staggered(gauge, StaggeredOptions{antiperiodic, lanes, threads,
                                                  milc_phases ? StaggeredPhases::milc : StaggeredPhases::standard});
          },
          "gauge"_a, "antiperiodic"_a, "lanes"_a, "threads"_a, "milc_phases"_a,
          "Make the naive operator of a gauge field. `lanes` is the largest number of lanes, `threads` the number of "
          "threads "
          "(0: the rank's share of the cores). Collective.")
      .def_static(
          "of_links",
          [](const onehop::Group& group, std::vector<std::int64_t> extents, std::vector<int> grid, const Memory& fat,
             const Memory* long_links, int lanes, int threads, std::vector<int> rank_at) {
            const nb::gil_scoped_release released;
            return Staggered(group, std::move(extents), std::move(grid), numbers(fat),
                             long_links == nullptr ? std::span<const Number>() : numbers(*long_links),
                             StaggeredOptions{true, lanes, threads, StaggeredPhases::standard}, std::move(rank_at));
          },
          "group"_a, "extents"_a, "grid"_a, "fat"_a, "long_links"_a.none(), "lanes"_a, "threads"_a,
          "rank_at"_a = std::vector<int>{},
          "Make the operator of given fat and long links: complex128 of this rank's block, "
          "[site][direction][row][column]. "
          "Collective.")
      .def(
          "link_bytes",
          [](const Staggered& s, const std::string& precision) {
            return s.link_bytes(precision_from_string(precision));
          },
          "precision"_a, "Return the bytes of this rank's links as applications in this precision read them.")
      .def_prop_ro(
          "lanes", [](const Staggered& s) { return s.geometry().spec().lanes; }, "Sites in a vector.")
      .def_prop_ro("threads", &Staggered::threads, "Threads of this rank.")
      .def_prop_ro("has_long_links", &Staggered::has_long_links, "Whether the operator has long links.")
      .def(
          "dslash",
          [](Staggered& self, const Memory& fields, const std::string& precision, int parity) {
            return without_gil(self,
                               [&] { return self.dslash(numbers(fields), precision_from_string(precision), parity); });
          },
          "fields"_a, "precision"_a, "parity"_a,
          "Apply the hopping term D. With `parity` 0 or 1 only even or odd sites are computed; the others are 0.")
      .def(
          "apply",
          [](Staggered& self, const Memory& fields, double mass, bool dagger, const std::string& precision) {
            return without_gil(
                self, [&] { return self.apply(numbers(fields), mass, dagger, precision_from_string(precision)); });
          },
          "fields"_a, "mass"_a, "dagger"_a, "precision"_a, "Apply M = 2 m + D, or its adjoint.")
      .def(
          "apply_mdagm",
          [](Staggered& self, const Memory& fields, double mass, const std::string& precision) {
            return without_gil(
                self, [&] { return self.apply_mdagm(numbers(fields), mass, precision_from_string(precision)); });
          },
          "fields"_a, "mass"_a, "precision"_a, "Apply M^dagger M = 4 m^2 - D D.")
      .def("solve", &solve, "source"_a, "masses"_a, "options"_a, "progress"_a.none(),
           nb::sig("def solve(self, source: Memory, masses: Sequence[float], options: LatticeSolverOptions, "
                   "progress: object) -> tuple[NDArray[numpy.complex128], LatticeSolverReport]"),
           "Solve M x = b for several right-hand sides and one mass, or for one right-hand side and several masses. "
           "Returns the solutions and the report.\n\n"
           "Parameters\n----------\n"
           "source : Memory\n    Right-hand sides.\n"
           "masses : sequence of float\n    Quark masses, above 0.\n"
           "options : LatticeSolverOptions\n    Options of the solver.\n"
           "progress : callable, optional\n    Called as progress(iteration, residual).");
}
