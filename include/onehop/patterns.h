// Patterns are functions that return a schedule. Every rank calls them with the same global parameters and needs no
// communication; `only_rank` builds just the part of one rank (as `Schedule::part` would cut it out).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  // What a site's numbers are, one entry per field, as a codec needs to know; empty: bytes.
  std::vector<ElementType> types = {};
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
  ElementType type = ElementType::bytes;  // what an element's numbers are, as a codec needs to know
};

// One round, in place in array 0 ("state"): every element straight to its final place, those of a rank for all its up to
// 2^k - 1 partners at once (k: the bits that go from the local ones to the rank's). Elements that keep their place are in no
// transfer, those that move within their rank are local transfers. Sorted by sender and receiver; `must_cover` holds every
// element that does not keep its place. Throws BadInput.
[[nodiscard]] Schedule permute_bits(const PermuteBitsSpec& spec, std::optional<int> only_rank = std::nullopt);

// The same result as one round per exchange of two bits, one after the other: what permute_bits is measured against.
[[nodiscard]] Schedule permute_bits_one_swap_at_a_time(const PermuteBitsSpec& spec,
                                                       std::optional<int> only_rank = std::nullopt);

// One round in which array 0 of rank `root` goes to the same place on every other rank.
[[nodiscard]] Schedule broadcast(int ranks, std::int64_t elements, std::int64_t element_bytes, int root,
                                 std::optional<int> only_rank = std::nullopt);

// How a reduction is spread over the ranks.
enum class ReduceAlgorithm : std::uint8_t {
  automatic,  // for whoever executes it to choose; the patterns want to be told
  one_shot,   // everyone sends everything to everyone, and everyone reduces everything
  two_shot,   // everyone reduces a segment of its own, and sends it to everyone
};

[[nodiscard]] std::string_view to_string(ReduceAlgorithm algorithm);
[[nodiscard]] ReduceAlgorithm reduce_algorithm_from_string(std::string_view name);  // "auto", "one_shot", "two_shot"

struct AllReduceSpec {
  int ranks = 1;
  std::int64_t elements = 0;
  ElementType type = ElementType::float32;
  Combine combine = Combine::add;  // not `replace`
  ReduceAlgorithm algorithm = ReduceAlgorithm::two_shot;
};

// The segment [first, last) of so many elements that a rank reduces in two-shot: blocks of 64 elements, as evenly as
// can be, the first ranks having one more.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> reduce_segment(std::int64_t elements, int ranks, int rank);

// Array 0 ("source") of all ranks, combined in the order of ranks, ends up in array 1 ("result") of every rank. What rank
// 0 has replaces, in the first round; what the others have is added to it in the order of ranks, in the second. In two-shot
// that happens for each rank's segment, and a third round sends the segments round. Throws BadInput.
[[nodiscard]] Schedule allreduce(const AllReduceSpec& spec, std::optional<int> only_rank = std::nullopt);

// The first two of these rounds for blocks of equal length: block r of the sources (`spec.elements` elements each), combined,
// ends up as the result on rank r. `spec.algorithm` is not looked at.
[[nodiscard]] Schedule reduce_scatter(const AllReduceSpec& spec, std::optional<int> only_rank = std::nullopt);

}  // namespace onehop
