// Patterns are functions that return a schedule. Every rank calls them with the same global parameters; they do not
// communicate. `only_rank` restricts the schedule to the part of one rank, like `Schedule::part`.
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
// the last grid dimension runs fastest in the rank number, unless `rank_at` says otherwise), with ghost layers around
// every rank's block.
struct HaloSpec {
  std::vector<std::int64_t> extents;  // global interior, without ghosts
  std::vector<int> grid;              // ranks per dimension; the product is the number of ranks
  // Ghost layers below and above, per dimension; may exceed a block (then data comes from further ranks).
  std::vector<std::pair<std::int64_t, std::int64_t>> widths;
  std::vector<bool> periodic;  // per dimension; at an open end ghosts exist but are not written
  bool corners = false;        // also exchange edges and corners, directly with their owners, in the same round
  // One entry per field: bytes of one site's element (8 for a double, 24 for three doubles, ...).
  std::vector<std::int64_t> element_bytes = {8};
  Codec codec = Codec::raw;
  // The type of the numbers of a site, one entry per field, for codecs; empty: bytes.
  std::vector<ElementType> types = {};
  // The rank at each position of the grid (C order), a permutation; empty: rank r is at position r. `Grid::map`
  // (machine/mapping.h) finds one that keeps neighbours on the same host.
  std::vector<int> rank_at = {};
};

// The block of one rank: the position of its interior in the global array, and the shape of its local array with
// ghosts.
struct HaloBlock {
  std::vector<std::int64_t> start;    // global index of the first interior site
  std::vector<std::int64_t> extents;  // interior sites per dimension; the first (extent mod grid) blocks have one more
  std::vector<std::int64_t> shape;    // extents + both widths
  std::vector<int> coords;            // position in the grid
};

// Throws BadInput if `spec` is invalid or has no such rank.
[[nodiscard]] HaloBlock halo_block(const HaloSpec& spec, int rank);

// A halo exchange in one round. Every ghost layer comes directly from the rank that owns it, and everything for one
// neighbour is one message. Array f of the schedule is field f ("field0", "field1", ...), with halo_block(...).shape
// elements. Transfers are sorted by sender, receiver and field. `must_cover` holds every ghost that lies in the global
// array. Throws BadInput.
[[nodiscard]] Schedule halo(const HaloSpec& spec, std::optional<int> only_rank = std::nullopt);

// One round in which every rank's block [rank * elements, (rank + 1) * elements) of array 0 goes to the same place on
// every other rank.
[[nodiscard]] Schedule allgather(int ranks, std::int64_t elements, std::int64_t element_bytes,
                                 std::optional<int> only_rank = std::nullopt);

// A state of 2^bits elements over 2^(bits - local_bits) ranks: the bits of an element's index below `local_bits` number
// it within its rank's array, the others are the rank's number.
struct PermuteBitsSpec {
  int bits = 0;        // at most 62
  int local_bits = 0;  // 0 to bits; a rank's array has 2^local_bits elements
  // Bit i of the index goes to bit permutation[i]: the element at index x moves to the index y whose bit permutation[i]
  // equals bit i of x. Contains each of 0 .. bits - 1 once.
  std::vector<int> permutation;
  std::int64_t element_bytes = 16;  // a complex double
  Codec codec = Codec::raw;
  ElementType type = ElementType::bytes;  // the type of the numbers of an element, for codecs
};

// A permutation of index bits in one round, in place in array 0 ("state"). Every element moves directly to its final
// place; a rank exchanges with up to 2^k - 1 partners at once, where k local bits become rank bits. Elements that keep
// their place are in no transfer; elements that move within their rank are in local transfers. Transfers are sorted by
// sender and receiver. `must_cover` holds every element that does not keep its place. Throws BadInput.
[[nodiscard]] Schedule permute_bits(const PermuteBitsSpec& spec, std::optional<int> only_rank = std::nullopt);

// The same result with one round per exchange of two bits: the baseline of permute_bits.
[[nodiscard]] Schedule permute_bits_one_swap_at_a_time(const PermuteBitsSpec& spec,
                                                       std::optional<int> only_rank = std::nullopt);

// One round in which array 0 of rank `root` goes to the same place on every other rank.
[[nodiscard]] Schedule broadcast(int ranks, std::int64_t elements, std::int64_t element_bytes, int root,
                                 std::optional<int> only_rank = std::nullopt);

// How the work of a reduction is distributed over the ranks.
enum class ReduceAlgorithm : std::uint8_t {
  automatic,  // chosen by `Collectives`; the patterns do not accept it
  one_shot,   // every rank sends its whole array to all others and reduces everything itself
  two_shot,   // a reduce-scatter, then an all-gather: every rank reduces one segment and sends it to all others
  by_host,    // inside each host first, then between hosts; only `Collectives` accept it
};

[[nodiscard]] std::string_view to_string(ReduceAlgorithm algorithm);
[[nodiscard]] ReduceAlgorithm reduce_algorithm_from_string(std::string_view name);  // "auto", "one_shot", ...

struct AllReduceSpec {
  int ranks = 1;
  std::int64_t elements = 0;
  ElementType type = ElementType::float32;
  Combine combine = Combine::add;  // not `replace`
  ReduceAlgorithm algorithm = ReduceAlgorithm::two_shot;
};

// The segment [first, last) of an array of `elements` elements that `rank` reduces in two-shot. Blocks of 64 elements
// are distributed as evenly as possible; the first ranks get one more.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> reduce_segment(std::int64_t elements, int ranks, int rank);

// Combines array 0 ("source") of all ranks, in the order of ranks, into array 1 ("result") of every rank. The first
// round copies the contribution of rank 0; the second combines the others with it in the order of ranks. In two-shot
// this happens for each rank's segment, and a third round sends every segment to all ranks. Throws BadInput.
[[nodiscard]] Schedule allreduce(const AllReduceSpec& spec, std::optional<int> only_rank = std::nullopt);

// The first two of these rounds for blocks of equal length (`spec.elements` elements each): rank r gets the combination
// of block r of all sources. Ignores `spec.algorithm`.
[[nodiscard]] Schedule reduce_scatter(const AllReduceSpec& spec, std::optional<int> only_rank = std::nullopt);

}  // namespace onehop
