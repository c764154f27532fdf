#include <nanobind/ndarray.h>
#include <nanobind/stl/complex.h>

#include "bindings.h"
#include "memory.h"
#include "onehop/lattice/staggered.h"

using onehop::lattice::Staggered;
using onehop::lattice::StaggeredSolve;

namespace {

using Number = std::complex<double>;

std::span<const Number> numbers(const Memory& memory) {
  return {reinterpret_cast<const Number*>(memory.bytes().data()), memory.bytes().size() / sizeof(Number)};
}

nb::ndarray<nb::numpy, Number> as_field(std::vector<Number> values, const Staggered& staggered) {
  auto* held = new std::vector<Number>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
  const auto block = staggered.geometry().block();
  std::vector<std::size_t> shape(block.rbegin(), block.rend());
  shape.push_back(3);
  return {held->data(), shape.size(), shape.data(), owner};
}

auto hop(Staggered& staggered, const Memory& field) {
  std::vector<Number> found;
  {
    const nb::gil_scoped_release released;
    found = staggered.hop(numbers(field));
  }
  return as_field(std::move(found), staggered);
}

nb::tuple solve(Staggered& staggered, const Memory& source, double mass, double tolerance, std::int64_t iterations) {
  StaggeredSolve found;
  {
    const nb::gil_scoped_release released;
    found = staggered.solve(numbers(source), mass, tolerance, iterations);
  }
  return nb::make_tuple(as_field(std::move(found.solution), staggered), found.iterations, found.true_residual,
                        found.converged, found.seconds, found.communication_seconds);
}

}  // namespace

void bind_lattice_staggered(nb::module_& module) {
  nb::class_<Staggered>(module, "LatticeStaggered", "The staggered one-link operator on a gauge field.")
      .def(
          "__init__",
          [](Staggered* self, const onehop::lattice::Gauge& gauge, bool antiperiodic, int lanes) {
            const nb::gil_scoped_release released;
            new (self) Staggered(gauge, {antiperiodic, lanes});
          },
          "gauge"_a, "antiperiodic"_a, "lanes"_a)
      .def_prop_ro(
          "lanes", [](const Staggered& s) { return s.geometry().spec().lanes; }, "Sites in a vector.")
      .def("hop", &hop, "field"_a)
      .def("solve", &solve, "source"_a, "mass"_a, "tolerance"_a, "iterations"_a,
           nb::sig("def solve(self, source: Memory, mass: float, tolerance: float, iterations: int) -> tuple"));
}
