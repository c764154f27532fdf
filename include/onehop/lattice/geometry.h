// A `Geometry` says where the sites of a periodic lattice of 1 to 4 dimensions lie: on which rank, and where in its memory. It is
// pure data, the same on every rank.
//
// Direction 0 (x) runs fastest in lexicographic order, and in the numbers of ranks; the whole lattice is cut into equal blocks. A
// rank's block is cut once more into sub-blocks, one per lane of a vector: vector number k holds the k-th site of every sub-block,
// so that arithmetic on vectors is arithmetic on several sites and no lane talks to another but at a sub-block's edge.
//
// The vectors are ordered such that faces are contiguous (docs/design/lattice_geometry.md): by colour (the parity of the coordinates within the
// block), then the interior, which needs no other rank, then the faces. Behind the own vectors lie ghosts, those of other ranks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "onehop/element_type.h"
#include "onehop/schedule.h"

namespace onehop::lattice {

struct GeometrySpec {
  std::vector<std::int64_t> extents;  // sites of the whole lattice per direction, 1 to 4 of them
  std::vector<int> grid;              // ranks per direction; each must divide its extent
  // Sites in a vector: a power of two of at most 64. Directions that are cut between ranks are not cut into lanes.
  int lanes = 1;
  int width = 1;    // how far neighbours are that a site needs, in sites
  int colours = 2;  // 2: even and odd sites lie apart, and every extent must be even; 1: all together
  // The sites of a colour in lexicographic order, for comparison: faces are not contiguous, and there is no interior where any is cut.
  bool lexicographic = false;
  friend bool operator==(const GeometrySpec&, const GeometrySpec&) = default;
};

// The two ends of a block in a direction: towards smaller and towards larger coordinates.
enum class Side : std::uint8_t { below = 0, above = 1 };

// The grid of so many ranks whose blocks have the least surface to others; among equals the one that cuts the last directions,
// whose faces are the most contiguous. Blocks keep at least `width` sites, and 2, where they are cut. Throws BadInput if there is none.
[[nodiscard]] std::vector<int> geometry_grid(std::span<const std::int64_t> extents, int ranks, int width = 1);

// The largest number of lanes up to `most` with which `spec` is a geometry; `spec.lanes` is not looked at. Throws BadInput.
[[nodiscard]] int geometry_lanes(GeometrySpec spec, int most);

class Geometry {
 public:
  // A neighbour as a kernel looks it up: a vector's number, and whether its lanes are to be rotated (see lane_source).
  struct Neighbour {
    std::int32_t vector = 0;
    bool rotated = false;
    friend bool operator==(const Neighbour&, const Neighbour&) = default;
  };

  // Throws BadInput: extents that the grid does not divide, blocks thinner than `width` or 2 where they are cut (below 2 * width faces overlap: they are not one piece,
  // and there is no interior), extents that are odd with
  // two colours, lanes that do not fit (sub-blocks must have even extents with two colours, and at least `width` sites).
  explicit Geometry(GeometrySpec spec);

  [[nodiscard]] const GeometrySpec& spec() const noexcept { return spec_; }
  [[nodiscard]] int dims() const noexcept { return static_cast<int>(spec_.extents.size()); }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] bool is_cut(int direction) const { return spec_.grid.at(static_cast<std::size_t>(direction)) > 1; }
  [[nodiscard]] std::span<const std::int64_t> block() const noexcept { return block_; }          // sites of a rank
  [[nodiscard]] std::span<const int> lane_grid() const noexcept { return lane_grid_; }           // sub-blocks of a rank
  [[nodiscard]] std::span<const std::int64_t> sub_block() const noexcept { return sub_block_; }  // sites of a lane
  [[nodiscard]] std::int64_t sites() const noexcept { return vectors() * spec_.lanes; }          // of a rank

  // Where a rank stands in the grid, the rank that stands somewhere (periodically), and a block's first site. Throw BadInput.
  [[nodiscard]] std::vector<int> coordinates(int rank) const;
  [[nodiscard]] int rank_at(std::span<const int> coordinates) const;
  [[nodiscard]] std::vector<std::int64_t> origin(int rank) const;
  // What to add to a local colour, modulo 2, to get the parity of the global coordinates: odd blocks turn it round.
  [[nodiscard]] int origin_colour(int rank) const;

  // Own vectors, then ghosts. `colour` is the local one, 0 to spec().colours - 1.
  [[nodiscard]] std::int64_t vectors() const noexcept { return static_cast<std::int64_t>(order_.size()); }
  [[nodiscard]] std::int64_t ghosts() const noexcept { return ghosts_; }
  [[nodiscard]] std::int64_t colour_begin(int colour) const { return begin_.at(static_cast<std::size_t>(colour)); }
  [[nodiscard]] std::int64_t colour_end(int colour) const { return begin_.at(static_cast<std::size_t>(colour) + 1); }
  // [colour_begin, interior_end) need no ghost.
  [[nodiscard]] std::int64_t interior_end(int colour) const { return interior_.at(static_cast<std::size_t>(colour)); }

  // The lexicographic number within the sub-block of each vector, and its inverse.
  [[nodiscard]] std::span<const std::int64_t> order() const noexcept { return order_; }
  [[nodiscard]] std::span<const std::int64_t> places() const noexcept { return places_; }
  // The lexicographic number within the block of the site that lies in this lane of this vector.
  [[nodiscard]] std::int64_t site(std::int64_t vector, int lane) const;

  // The vectors of one colour within `width` of an end of the block: what another rank needs. Nothing where the direction is not cut.
  [[nodiscard]] const Slice& face(int direction, Side side, int colour) const;
  // Where the sites of this colour beyond that end are kept, in the order of the face they come from.
  [[nodiscard]] const Slice& ghost(int direction, Side side, int colour) const;
  // The pieces of that face if the sites of a colour were in lexicographic order.
  [[nodiscard]] std::int64_t lexicographic_pieces(int direction, Side side, int colour) const;

  // For every own vector, for every direction: the neighbour `hop` sites below and that above, 1 <= hop <= width. Throws BadInput.
  [[nodiscard]] std::vector<Neighbour> neighbours(int hop = 1) const;
  // Of a rotated neighbour: lane l takes what its vector has in lane lane_source(...)[l].
  [[nodiscard]] std::vector<int> lane_source(int direction, Side side) const;

  // One round: the faces of `colour` (the parity of global coordinates; all by default) to the ghosts of the ranks beside. Array 0
  // ("field") has vectors() + ghosts() elements of so many bytes, each one vector of a field. Throws BadInput.
  [[nodiscard]] Schedule halo(std::int64_t element_bytes, ElementType type = ElementType::bytes,
                              std::optional<int> colour = std::nullopt,
                              std::optional<int> only_rank = std::nullopt) const;

 private:
  using Coordinates = std::array<std::int64_t, 4>;
  void check();
  void choose_lanes();
  void order_sites();
  void find_faces();
  [[nodiscard]] Coordinates inside(std::int64_t number) const;
  [[nodiscard]] std::int64_t number_of(const Coordinates& at) const;
  [[nodiscard]] int colour_of(const Coordinates& at) const;
  [[nodiscard]] bool in_face(const Coordinates& at, int direction, Side side) const;
  [[nodiscard]] std::size_t face_number(int direction, Side side, int colour) const;

  GeometrySpec spec_;
  int ranks_ = 1;
  std::vector<std::int64_t> block_;
  std::vector<int> lane_grid_;
  std::vector<std::int64_t> sub_block_;
  std::vector<std::int64_t> order_;
  std::vector<std::int64_t> places_;
  std::vector<std::int64_t> begin_;
  std::vector<std::int64_t> interior_;
  std::vector<Slice> faces_;
  std::vector<Slice> ghost_;
  std::int64_t ghosts_ = 0;
};

}  // namespace onehop::lattice
