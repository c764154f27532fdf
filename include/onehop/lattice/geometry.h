// A `Geometry` describes where the sites of a periodic lattice of 1 to 4 dimensions are stored: on which rank, and
// where in its memory. It is pure data, the same on every rank.
//
// Direction 0 (x) runs fastest in lexicographic order and in the numbering of ranks. The lattice is cut into equal
// blocks, one per rank. A rank's block is cut again into sub-blocks, one per lane of a SIMD vector: vector number k
// holds the k-th site of every sub-block. So vector arithmetic works on several sites at once, and lanes exchange data
// only at the edges of sub-blocks.
//
// Vectors are ordered by parity (of the coordinates within the block); within a parity the interior, which needs no
// other rank, comes before the faces. This order makes faces contiguous (docs/design/lattice_geometry.md). Ghost
// vectors, which hold the sites of other ranks, follow the rank's own vectors.
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
  std::vector<std::int64_t> extents;  // sites of the whole lattice per direction, 1 to 4 directions
  std::vector<int> grid;              // ranks per direction; each must divide its extent
  // Sites in a vector: a power of two, at most 64. Lanes divide only directions that are not cut between ranks.
  int lanes = 1;
  int width = 1;     // halo width in sites
  int parities = 2;  // 2: even and odd sites are stored apart, and every extent must be even; 1: all sites together
  // Keeps the sites of a parity in lexicographic order, for comparison: then faces are not contiguous, and a lattice
  // that is cut has no interior.
  bool lexicographic = false;
  // The rank at each position of the grid (direction 0 fastest), a permutation; empty: rank r is at position r.
  std::vector<int> rank_at = {};
  friend bool operator==(const GeometrySpec&, const GeometrySpec&) = default;
};

// The two ends of a block in a direction: towards smaller and towards larger coordinates.
enum class Side : std::uint8_t { below = 0, above = 1 };

// Returns the grid of `ranks` ranks whose blocks have the smallest surface. Among equal grids it returns the one that
// cuts the last directions, whose faces are the most contiguous. Blocks have at least max(`width`, 2) sites in every
// direction that is cut. Throws BadInput if there is no such grid.
[[nodiscard]] std::vector<int> geometry_grid(std::span<const std::int64_t> extents, int ranks, int width = 1);

// Returns the largest number of lanes, at most `max_lanes`, with which `spec` is a valid geometry; ignores
// `spec.lanes`. Throws BadInput.
[[nodiscard]] int geometry_lanes(GeometrySpec spec, int max_lanes);

class Geometry {
 public:
  // A neighbour as kernels use it: the number of its vector, and whether the lanes must be rotated (see lane_source).
  struct Neighbour {
    std::int32_t vector = 0;
    bool rotated = false;
    friend bool operator==(const Neighbour&, const Neighbour&) = default;
  };

  // Throws BadInput for extents that the grid does not divide; blocks thinner than max(`width`, 2) where they are cut;
  // odd extents with two parities; lanes that do not fit (sub-blocks need even extents with two parities, and at least
  // `width` sites). In blocks thinner than 2 * width the faces overlap: they are not contiguous, and there is no
  // interior.
  explicit Geometry(GeometrySpec spec);

  [[nodiscard]] const GeometrySpec& spec() const noexcept { return spec_; }
  [[nodiscard]] int dims() const noexcept { return static_cast<int>(spec_.extents.size()); }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] bool is_cut(int direction) const { return spec_.grid.at(static_cast<std::size_t>(direction)) > 1; }
  [[nodiscard]] std::span<const std::int64_t> block() const noexcept { return block_; }          // sites of a rank
  [[nodiscard]] std::span<const int> lane_grid() const noexcept { return lane_grid_; }           // sub-blocks of a rank
  [[nodiscard]] std::span<const std::int64_t> sub_block() const noexcept { return sub_block_; }  // sites of a lane
  [[nodiscard]] std::int64_t sites() const noexcept { return vectors() * spec_.lanes; }          // of a rank

  // The coordinates of a rank in the grid, the rank at given coordinates (periodic), and the first site of a block.
  // Throw BadInput.
  [[nodiscard]] std::vector<int> coordinates(int rank) const;
  [[nodiscard]] int rank_at(std::span<const int> coordinates) const;
  [[nodiscard]] std::vector<std::int64_t> origin(int rank) const;
  // The parity of the first site of a rank's block. Adding it to a local parity, modulo 2, gives the parity of the
  // global coordinates.
  [[nodiscard]] int origin_parity(int rank) const;

  // Numbers of own vectors and of ghosts. `parity` is the local one, 0 to spec().parities - 1.
  [[nodiscard]] std::int64_t vectors() const noexcept { return static_cast<std::int64_t>(order_.size()); }
  [[nodiscard]] std::int64_t ghosts() const noexcept { return ghosts_; }
  [[nodiscard]] std::int64_t parity_begin(int parity) const { return begin_.at(static_cast<std::size_t>(parity)); }
  [[nodiscard]] std::int64_t parity_end(int parity) const { return begin_.at(static_cast<std::size_t>(parity) + 1); }
  // The vectors [parity_begin, interior_end) need no ghosts.
  [[nodiscard]] std::int64_t interior_end(int parity) const { return interior_.at(static_cast<std::size_t>(parity)); }

  // The lexicographic number within the sub-block of each vector, and its inverse.
  [[nodiscard]] std::span<const std::int64_t> order() const noexcept { return order_; }
  [[nodiscard]] std::span<const std::int64_t> places() const noexcept { return places_; }
  // The lexicographic number within the block of the site in this lane of this vector.
  [[nodiscard]] std::int64_t site(std::int64_t vector, int lane) const;

  // The vectors of one parity within `width` of an end of the block, which another rank needs. Empty if the direction
  // is not cut.
  [[nodiscard]] const Slice& face(int direction, Side side, int parity) const;
  // The ghosts of this parity beyond that end, in the order of the face that they are copies of.
  [[nodiscard]] const Slice& ghost(int direction, Side side, int parity) const;
  // The number of contiguous pieces of that face if the sites of a parity were in lexicographic order.
  [[nodiscard]] std::int64_t lexicographic_pieces(int direction, Side side, int parity) const;

  // The neighbours `distance` sites below and above, for every own vector and every direction. 1 <= distance <= width.
  // Throws BadInput.
  [[nodiscard]] std::vector<Neighbour> neighbours(int distance = 1) const;
  // For a rotated neighbour: lane l takes the value from lane lane_source(...)[l] of the neighbour's vector.
  [[nodiscard]] std::vector<int> lane_source(int direction, Side side) const;

  // The halo exchange in one round: copies the faces of `parity` (of the global coordinates; default: all) to the
  // ghosts of the neighbouring ranks. Array 0 ("field") has vectors() + ghosts() elements of `element_bytes` bytes,
  // each one vector of a field. Throws BadInput.
  [[nodiscard]] Schedule halo(std::int64_t element_bytes, ElementType type = ElementType::bytes,
                              std::optional<int> parity = std::nullopt,
                              std::optional<int> only_rank = std::nullopt) const;

 private:
  using Coordinates = std::array<std::int64_t, 4>;
  void check();
  void choose_lanes();
  void order_sites();
  void find_faces();
  [[nodiscard]] Coordinates inside(std::int64_t number) const;
  [[nodiscard]] std::int64_t number_of(const Coordinates& at) const;
  [[nodiscard]] int parity_of(const Coordinates& at) const;
  [[nodiscard]] bool in_face(const Coordinates& at, int direction, Side side) const;
  [[nodiscard]] std::size_t face_number(int direction, Side side, int parity) const;

  GeometrySpec spec_;
  int ranks_ = 1;
  std::vector<int> position_of_;  // of each rank in the grid; empty: its own number
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
