#include "onehop/lattice/gauge.h"

#include "python/bindings/lattice_arrays.h"

using onehop::lattice::Gauge;

void bind_lattice_gauge(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Gauge>(module, "LatticeGauge",
                    "An SU(3) gauge field on a periodic lattice that is split over a grid of ranks.")
      .def(nb::init<const onehop::Group&, std::vector<std::int64_t>, std::vector<int>, std::vector<int>>(), "group"_a,
           "extents"_a, "grid"_a, "rank_at"_a, release())
      .def_static(
          "bytes_on_a_rank",
          [](const std::vector<std::int64_t>& extents, const std::vector<int>& grid, int ranks) {
            return Gauge::bytes_on_a_rank(extents, grid, ranks);
          },
          "extents"_a, "grid"_a, "ranks"_a,
          "Return the bytes that one of `ranks` ranks needs for a field, with the copies that its methods make. An "
          "empty grid means one that is not chosen yet.")
      .def(
          "set_links", [](Gauge& gauge, const Memory& links) { gauge.set_links(numbers(links)); }, "links"_a, release())
      .def("get_links",
           [](const Gauge& gauge) {
             return block_array(gauge.links(), gauge.geometry(), {gauge.geometry().block().size(), 3, 3});
           })
      .def("set_random", &Gauge::set_random, "seed"_a, release(),
           "Draw every link from the Haar measure of SU(3). Collective.")
      .def(
          "plaquettes",
          [](const Gauge& gauge) {
            const auto found = gauge.plaquettes();
            return std::tuple(found.all, found.space, found.time);
          },
          release())
      .def("link_trace", &Gauge::link_trace, release(), "Return the average of Re tr / 3 over all links. Collective.")
      .def(
          "deviation",
          [](const Gauge& gauge) {
            const auto found = gauge.deviation();
            return std::tuple(found.value, found.site, found.direction);
          },
          release())
      .def("reunitarise", &Gauge::reunitarise, release(),
           "Project every link back to SU(3). Collective. Raises BadInput, and leaves the field as it is, if a link is "
           "singular.")
      .def("heat_bath", &Gauge::heat_bath, "beta"_a, "seed"_a, "sweep"_a, "compare"_a = true, release(),
           "Make a heat bath sweep for the Wilson action. The links depend on `seed` and the number `sweep`. Ranks "
           "compare the arguments, but for later sweeps of a loop, without `compare`. Collective.")
      .def("over_relax", &Gauge::over_relax, release(), "Make an over-relaxation sweep. Collective.");
}
