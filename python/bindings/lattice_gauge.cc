#include <nanobind/ndarray.h>
#include <nanobind/stl/complex.h>

#include "onehop/lattice/gauge.h"
#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"

using onehop::lattice::Gauge;

namespace {

using Number = std::complex<double>;

// Converts links to an array whose shape is the block, the last direction first, then direction, row, column.
nb::ndarray<nb::numpy, Number> as_links(std::vector<Number> values, const Gauge& gauge) {
  auto* held = new std::vector<Number>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
  const auto block = gauge.geometry().block();
  std::vector<std::size_t> shape(block.rbegin(), block.rend());
  shape.insert(shape.end(), {block.size(), 3, 3});
  return {held->data(), shape.size(), shape.data(), owner};
}

}  // namespace

void bind_lattice_gauge(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Gauge>(module, "LatticeGauge",
                    "An SU(3) gauge field on a periodic lattice that is split over a grid of ranks.")
      .def(nb::init<const onehop::Group&, std::vector<std::int64_t>, std::vector<int>, std::vector<int>>(), "group"_a,
           "extents"_a, "grid"_a, "rank_at"_a = std::vector<int>{}, release(),
           "Make a field of unit links. `extents` and `grid` list direction x first; `rank_at` is the rank at each "
           "position of the grid. Collective.")
      .def_static(
          "bytes_on_a_rank",
          [](const std::vector<std::int64_t>& extents, const std::vector<int>& grid, int ranks) {
            return Gauge::bytes_on_a_rank(extents, grid, ranks);
          },
          "extents"_a, "grid"_a, "ranks"_a,
          "Return the bytes that one of `ranks` ranks needs for a field, with the copies that its methods make. An "
          "empty "
          "grid means one that is not chosen yet.")
      .def(
          "set_links",
          [](Gauge& gauge, const Memory& links) {
            gauge.set_links(
                {reinterpret_cast<const Number*>(links.bytes().data()), links.bytes().size() / sizeof(Number)});
          },
          "links"_a, release(),
          "Set the links of this rank's block: complex128 in lexicographic order, [site][direction][row][column]. "
          "Collective.")
      .def(
          "get_links", [](const Gauge& gauge) { return as_links(gauge.links(), gauge); },
          "Return the links of this rank's block as complex128 of shape (..., y, x, direction, 3, 3).")
      .def("set_random", &Gauge::set_random, "seed"_a, release(),
           "Draw every link from the Haar measure of SU(3). Collective.")
      .def(
          "plaquettes",
          [](const Gauge& gauge) {
            onehop::lattice::Plaquettes found;
            {
              const nb::gil_scoped_release released;
              found = gauge.plaquettes();
            }
            return nb::make_tuple(found.all, found.space, found.time);
          },
          nb::sig("def plaquettes(self) -> tuple[float, float, float]"),
          "Return the averages of Re tr / 3 over all plaquettes, over the spatial ones, and over those in time. "
          "Collective.")
      .def("link_trace", &Gauge::link_trace, release(), "Return the average of Re tr / 3 over all links. Collective.")
      .def(
          "deviation",
          [](const Gauge& gauge) {
            onehop::lattice::GaugeDeviation found;
            {
              const nb::gil_scoped_release released;
              found = gauge.deviation();
            }
            return nb::make_tuple(found.value, as_tuple(found.site), found.direction);
          },
          nb::sig("def deviation(self) -> tuple[float, tuple[int, ...], int]"),
          "Return the largest deviation of a link from SU(3), and the site and direction of that link. Collective.")
      .def("reunitarise", &Gauge::reunitarise, release(),
           "Project every link back to SU(3). Collective. Raises BadInput, and leaves the field as it is, if a link is "
           "singular.")
      .def("heat_bath", &Gauge::heat_bath, "beta"_a, "seed"_a, "sweep"_a, release(),
           "Make a heat bath sweep for the Wilson action. The links depend on `seed` and the number `sweep`. "
           "Collective.")
      .def("over_relax", &Gauge::over_relax, release(), "Make an over-relaxation sweep. Collective.");
}
