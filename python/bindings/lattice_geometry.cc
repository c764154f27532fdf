#include "onehop/lattice/geometry.h"

#include "python/bindings/lattice_arrays.h"

using onehop::lattice::Geometry;
using onehop::lattice::Side;

namespace {

Side side_from(const std::string& name) {
  if (name == "below") return Side::below;
  if (name == "above") return Side::above;
  throw onehop::BadInput("lattice geometry: expected the side 'below' or 'above', found '" + name + "'");
}

NumberArray<std::int64_t> sites(const Geometry& geometry) {
  const int lanes = geometry.spec().lanes;
  std::vector<std::int64_t> numbers;
  for (std::int64_t k = 0; k < geometry.vectors(); ++k) {
    for (int lane = 0; lane < lanes; ++lane) numbers.push_back(geometry.site(k, lane));
  }
  return as_array(std::move(numbers), {static_cast<std::size_t>(geometry.vectors()), static_cast<std::size_t>(lanes)});
}

NumberArray<std::int64_t> neighbours(const Geometry& geometry, int distance) {
  std::vector<std::int64_t> numbers;
  for (const auto& each : geometry.neighbours(distance)) {
    numbers.push_back(each.vector);
    numbers.push_back(each.rotated ? 1 : 0);
  }
  return as_array(std::move(numbers), {static_cast<std::size_t>(geometry.vectors()),
                                       static_cast<std::size_t>(geometry.dims()), std::size_t{2}, std::size_t{2}});
}

}  // namespace

void bind_lattice_geometry(nb::module_& module) {
  nb::class_<Geometry>(module, "LatticeGeometry",
                       "The layout of a periodic lattice of 1 to 4 dimensions: the rank and the place of every site.")
      .def(
          "__init__",
          [](Geometry* self, std::vector<std::int64_t> extents, std::vector<int> grid, int lanes, int width,
             int parities, std::vector<int> rank_at) {
            new (self)
                Geometry({std::move(extents), std::move(grid), lanes, width, parities, false, std::move(rank_at)});
          },
          "extents"_a, "grid"_a, "lanes"_a, "width"_a, "parities"_a, "rank_at"_a)
      .def_prop_ro(
          "extents", [](const Geometry& g) { return as_tuple(g.spec().extents); },
          "Sites of the whole lattice per direction, x first.")
      .def_prop_ro(
          "grid", [](const Geometry& g) { return as_tuple(g.spec().grid); }, "Ranks per direction.")
      .def_prop_ro(
          "lanes", [](const Geometry& g) { return g.spec().lanes; }, "Sites in a vector.")
      .def_prop_ro(
          "width", [](const Geometry& g) { return g.spec().width; }, "Distance of the neighbours of a site.")
      .def_prop_ro(
          "parities", [](const Geometry& g) { return g.spec().parities; },
          "2 if even and odd sites are stored apart, otherwise 1.")
      .def_prop_ro("ranks", &Geometry::ranks, "Number of ranks.")
      .def_prop_ro(
          "rank_at", [](const Geometry& g) { return as_tuple(g.spec().rank_at); },
          "The rank at each position of the grid; empty: its own number.")
      .def_prop_ro("block", tuple_of(&Geometry::block), "Sites of a rank's block per direction.")
      .def_prop_ro("lane_grid", tuple_of(&Geometry::lane_grid),
                   "Sub-blocks of a rank's block per direction, one for each lane.")
      .def_prop_ro("sub_block", tuple_of(&Geometry::sub_block), "Sites of a sub-block per direction.")
      .def_prop_ro("vectors", &Geometry::vectors, "Number of a rank's own vectors.")
      .def_prop_ro("ghosts", &Geometry::ghosts, "Number of ghost vectors, which hold sites of other ranks.")
      .def(
          "origin", [](const Geometry& g, int rank) { return as_tuple(g.origin(rank)); }, "rank"_a,
          "Return the first site of a rank's block.")
      .def(
          "coordinates", [](const Geometry& g, int rank) { return as_tuple(g.coordinates(rank)); }, "rank"_a,
          "Return the coordinates of a rank in the grid.")
      .def("origin_parity", &Geometry::origin_parity, "rank"_a,
           "Return the parity of the first site of a rank's block.")
      .def(
          "parity_range",
          [](const Geometry& g, int parity) {
            return std::tuple(g.parity_begin(parity), g.interior_end(parity), g.parity_end(parity));
          },
          "parity"_a, "Return the range of the vectors of a local parity: first vector, end of the interior, end.")
      .def_prop_ro(
          "sites", &sites, nb::rv_policy::automatic,
          "Lexicographic number within the block of the site in every vector and lane, of shape (vectors, lanes).")
      .def("neighbours", &neighbours, "distance"_a,
           "Return the neighbours at a distance as an array of shape (vectors, dims, 2, 2): for each vector, direction "
           "and side (below, above) the neighbour's vector, and 1 if its lanes must be rotated.")
      .def(
          "lane_source",
          [](const Geometry& g, int direction, const std::string& side) {
            return as_tuple(g.lane_source(direction, side_from(side)));
          },
          "direction"_a, "side"_a,
          "Return the lane from which each lane of a rotated neighbour comes. `side` is below or above.")
      .def(
          "face",
          [](const Geometry& g, int direction, const std::string& side, int parity) {
            return g.face(direction, side_from(side), parity);
          },
          "direction"_a, "side"_a, "parity"_a, "Return the vectors of a local parity that another rank needs.")
      .def(
          "ghost",
          [](const Geometry& g, int direction, const std::string& side, int parity) {
            return g.ghost(direction, side_from(side), parity);
          },
          "direction"_a, "side"_a, "parity"_a, "Return the ghosts of a local parity beyond an end of the block.")
      .def(
          "lexicographic_pieces",
          [](const Geometry& g, int direction, const std::string& side, int parity) {
            return g.lexicographic_pieces(direction, side_from(side), parity);
          },
          "direction"_a, "side"_a, "parity"_a,
          "Return the number of contiguous pieces of a face if sites were stored in lexicographic order.")
      .def(
          "halo",
          [](const Geometry& g, std::int64_t bytes, const std::string& type, std::optional<int> parity,
             std::optional<int> only_rank) {
            return g.halo(bytes, onehop::element_type_from_string(type), parity, only_rank);
          },
          "element_bytes"_a, "type"_a, "parity"_a.none(), "only_rank"_a.none());
  module.def(
      "lattice_geometry_grid",
      [](const std::vector<std::int64_t>& extents, int ranks, int width) {
        return onehop::lattice::geometry_grid(extents, ranks, width);
      },
      "extents"_a, "ranks"_a, "width"_a);
  module.def(
      "lattice_geometry_lanes",
      [](std::vector<std::int64_t> extents, std::vector<int> grid, int width, int parities, int max_lanes) {
        return onehop::lattice::geometry_lanes({std::move(extents), std::move(grid), 1, width, parities}, max_lanes);
      },
      "extents"_a, "grid"_a, "width"_a, "parities"_a, "max_lanes"_a);
}
