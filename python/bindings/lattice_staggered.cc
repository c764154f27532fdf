#include <nanobind/ndarray.h>
#include <nanobind/stl/complex.h>

#include "bench/staggered_ways.h"
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

// Fields one after the other: shape (fields, t, z, y, x, 3).
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

template <class What>
auto without_gil(const Staggered& staggered, What&& what) {
  std::vector<Number> found;
  {
    const nb::gil_scoped_release released;
    found = what();
  }
  return as_fields(std::move(found), staggered);
}

nb::tuple solve(Staggered& staggered, const Memory& source, const std::vector<double>& masses, double tolerance,
                std::int64_t iterations, const std::string& precision, const std::string& inner, bool reproducible,
                bool half_faces, const nb::object& progress) {
  SolverOptions options{.tolerance = tolerance,
                        .iterations = iterations,
                        .precision = precision_from_string(precision),
                        .inner = precision_from_string(inner),
                        .reproducible = reproducible,
                        .half_faces = half_faces,
                        .progress = {}};
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
  const SolverReport& report = found.report;
  return nb::make_tuple(as_fields(std::move(found.solutions), staggered), report.iterations, report.worst_residual(),
                        report.converged, report.seconds, report.communication_seconds, report.flops, report.bytes,
                        report.corrections, report.residuals);
}

}  // namespace

void bind_lattice_staggered(nb::module_& module) {
  nb::class_<Staggered>(module, "LatticeStaggered",
                        "The staggered operator of a gauge field, or of fat and long links.")
      .def(
          "__init__",
          [](Staggered* self, const onehop::lattice::Gauge& gauge, bool antiperiodic, int lanes, int threads,
             bool milc_phases) {
            const nb::gil_scoped_release released;
            new (self)
                Staggered(gauge, StaggeredOptions{antiperiodic, lanes, threads,
                                                  milc_phases ? StaggeredPhases::milc : StaggeredPhases::standard});
          },
          "gauge"_a, "antiperiodic"_a, "lanes"_a, "threads"_a, "milc_phases"_a)
      .def_static(
          "of_links",
          [](const onehop::Group& group, std::vector<std::int64_t> extents, std::vector<int> grid, const Memory& fat,
             const Memory* long_links, int lanes, int threads) {
            const nb::gil_scoped_release released;
            return Staggered(group, std::move(extents), std::move(grid), numbers(fat),
                             long_links == nullptr ? std::span<const Number>() : numbers(*long_links),
                             StaggeredOptions{true, lanes, threads, StaggeredPhases::standard});
          },
          "group"_a, "extents"_a, "grid"_a, "fat"_a, "long_links"_a.none(), "lanes"_a, "threads"_a)
      .def_static(
          "for_bench",
          [](const std::string& way, const onehop::Group& group, std::vector<std::int64_t> extents,
             std::vector<int> grid, const Memory& fat, const Memory& long_links, int threads) {
            const nb::gil_scoped_release released;
            return onehop::bench::staggered_way(way, group, std::move(extents), std::move(grid), numbers(fat),
                                                numbers(long_links), threads);
          },
          "way"_a, "group"_a, "extents"_a, "grid"_a, "fat"_a, "long_links"_a, "threads"_a,
          "With faces and sums by \"MPI\", or \"scalar\" loops.")
      .def(
          "link_bytes",
          [](const Staggered& s, const std::string& precision) {
            return s.link_bytes(precision_from_string(precision));
          },
          "precision"_a, "Memory that this rank's links take as applications read them.")
      .def_prop_ro(
          "lanes", [](const Staggered& s) { return s.geometry().spec().lanes; }, "Sites in a vector.")
      .def_prop_ro("threads", &Staggered::threads, "Threads of a rank.")
      .def_prop_ro("has_long_links", &Staggered::has_long_links)
      .def(
          "hop",
          [](Staggered& self, const Memory& fields, const std::string& precision, int colour) {
            return without_gil(self,
                               [&] { return self.hop(numbers(fields), precision_from_string(precision), colour); });
          },
          "fields"_a, "precision"_a, "colour"_a)
      .def(
          "apply",
          [](Staggered& self, const Memory& fields, double mass, bool dagger, const std::string& precision) {
            return without_gil(
                self, [&] { return self.apply(numbers(fields), mass, dagger, precision_from_string(precision)); });
          },
          "fields"_a, "mass"_a, "dagger"_a, "precision"_a)
      .def(
          "apply_normal",
          [](Staggered& self, const Memory& fields, double mass, const std::string& precision) {
            return without_gil(
                self, [&] { return self.apply_normal(numbers(fields), mass, precision_from_string(precision)); });
          },
          "fields"_a, "mass"_a, "precision"_a)
      .def("solve", &solve, "source"_a, "masses"_a, "tolerance"_a, "iterations"_a, "precision"_a, "inner"_a,
           "reproducible"_a, "half_faces"_a, "progress"_a.none(),
           nb::sig("def solve(self, source: Memory, masses: Sequence[float], tolerance: float, iterations: int, "
                   "precision: str, "
                   "inner: str, reproducible: bool, half_faces: bool, progress: object) -> tuple"));
}
