// Patterns are functions that return a schedule. Every rank calls them with the same global parameters and needs no
// communication; `only_rank` builds just the part of one rank (as `Schedule::part` would cut it out).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onehop/schedule.h"

namespace onehop {

// How an N-dimensional global array of `extents` (C order, 1 to 6 dimensions) is split over a grid of ranks (C order:
// the last grid dimension runs fastest in the rank number), with ghost layers around every rank's block.
struct HaloSpec {
  std::vector<std::int64_t> extents;  // global interior, without ghosts
  std::vector<int> grid;              // ranks per dimension; the product is the number of ranks
  // Ghost layers below and above, per dimension; may exceed a block (then data comes from further ranks).
  std::vector<std::pair<std::int64_t, std::int64_t>> widths;
  std::vector<bool> periodic;  // per dimension; at an open end ghosts exist but are not written
  bool corners = false;        // also edges and corners, straight from their owners, in the same round
  // One entry per field: bytes of one site's element (8 for a double, 24 for three doubles, ...).
  std::vector<std::int64_t> element_bytes = {8};
  Codec codec = Codec::raw;
};

// One rank's block: where its interior lies in the global array, and the shape of its local array with ghosts.
struct HaloBlock {
  std::vector<std::int64_t> start;    // global index of the first interior site
  std::vector<std::int64_t> extents;  // interior sites per dimension; the first (extent mod grid) blocks have one more
  std::vector<std::int64_t> shape;    // extents + both widths
  std::vector<int> coords;            // position in the grid
};

// Throws BadInput if `spec` is not one, or has no such rank.
[[nodiscard]] HaloBlock halo_block(const HaloSpec& spec, int rank);

// One round: every ghost layer straight from the rank that owns it; all for one neighbour is one message. Array f of
// the schedule is field f ("field0", "field1", ...), with halo_block(...).shape elements. Transfers are sorted by sender,
// receiver and field. `must_cover` holds every ghost that lies in the global array. Throws BadInput.
[[nodiscard]] Schedule halo(const HaloSpec& spec, std::optional<int> only_rank = std::nullopt);

// One round in which every rank's block [rank * elements, (rank + 1) * elements) of array 0 goes to the same place on
// every other rank.
[[nodiscard]] Schedule allgather(int ranks, std::int64_t elements, std::int64_t element_bytes,
                                 std::optional<int> only_rank = std::nullopt);

// A state of 2^bits elements over 2^(bits - local_bits) ranks: the bits of an element's index below `local_bits` number it
// within its rank's array, the others are the rank's number.
struct PermuteBitsSpec {
  int bits = 0;        // at most 62
  int local_bits = 0;  // 0 to bits; a rank's array has 2^local_bits elements
  // Bit i of the index goes to bit permutation[i]: what lies at index x before lies afterwards at the index y whose bit
  // permutation[i] is bit i of x. Each of 0 .. bits - 1 stands in it once.
  std::vector<int> permutation;
  std::int64_t element_bytes = 16;  // a complex double
  Codec codec = Codec::raw;
};

// One round, in place in array 0 ("state"): every element straight to its final place, those of a rank for all its up to
// 2^k - 1 partners at once (k: the bits that go from the local ones to the rank's). Elements that keep their place are in no
// transfer, those that move within their rank are local transfers. Sorted by sender and receiver; `must_cover` holds every
// element that does not keep its place. Throws BadInput.
[[nodiscard]] Schedule permute_bits(const PermuteBitsSpec& spec, std::optional<int> only_rank = std::nullopt);

// The same result as one round per exchange of two bits, one after the other: what permute_bits is measured against.
[[nodiscard]] Schedule permute_bits_one_swap_at_a_time(const PermuteBitsSpec& spec,
                                                       std::optional<int> only_rank = std::nullopt);

}  // namespace onehop
