// A `Schedule` is rounds of transfers between ranks: pure data, no memory, no network. The same object is counted
// (count.h), verified (verify.h), saved as JSON, and executed (plan.h).
//
// Within a round all transfers happen at once: each reads what its source held before the round. Rounds follow each other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/codec.h"
#include "onehop/element_type.h"
#include "onehop/slice.h"

namespace onehop {

// How what arrives combines with what is there. Everything but `replace` needs an element type that is not `bytes`.
enum class Combine : std::uint8_t { replace, add, min, max, prod };

[[nodiscard]] std::string_view to_string(Combine combine);
[[nodiscard]] Combine combine_from_string(std::string_view name);

// One array that the schedule moves data of. Every rank has one of each, of possibly different length.
struct ArraySpec {
  std::string name;
  // At least 1; for every type but `bytes` the size of that type, or a multiple: elements of several numbers, as complex ones.
  std::int64_t element_bytes = 8;
  ElementType type = ElementType::bytes;
  // Number of elements: one value for all ranks, or one per rank.
  std::vector<std::int64_t> elements;

  [[nodiscard]] std::int64_t elements_on(int rank) const {
    return elements.size() == 1 ? elements.front() : elements.at(static_cast<std::size_t>(rank));
  }
  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

// One end of a transfer: a slice of one array of one rank.
struct Place {
  int rank = 0;
  int array = 0;
  Slice slice;
  friend bool operator==(const Place&, const Place&) = default;
};

// One movement. A transfer whose two ranks are the same is a copy inside that rank and crosses no channel.
struct Transfer {
  Place from;
  Place to;
  Combine combine = Combine::replace;
  Codec codec = Codec::raw;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// A permutation of the bits of an index that runs over the elements of one array on all ranks: the lower `local_bits` bits
// number the element on its rank, the others the rank. What lies at index x goes to the index whose bit to[i] is bit i of x.
struct BitPermutation {
  int array = 0;
  int local_bits = 0;
  std::vector<int> to;  // one entry per bit of the index, local bits first
  friend bool operator==(const BitPermutation&, const BitPermutation&) = default;
};

struct Round {
  std::vector<Transfer> transfers;
  // Says that the transfers are all that this permutation moves, as `permute_bits` (patterns.h) lists them: it may then be in
  // place in any cycle of ranks and within a rank, which transfers alone may not. `verify` and plans hold it to its word.
  std::optional<BitPermutation> permutation = std::nullopt;
  friend bool operator==(const Round&, const Round&) = default;
};

// More ranks than any machine has; counting keeps numbers for each of them, so that a wrong number must not be taken.
inline constexpr int max_ranks = 1 << 20;

struct Schedule {
  std::string name;
  int ranks = 1;
  std::vector<ArraySpec> arrays;
  std::vector<Round> rounds;
  // What the rounds together must write; checked by `verify`.
  std::vector<Place> must_cover;

  // The part that `rank` takes part in: transfers from it or to it, in the same rounds and order, and its must_cover.
  // Throws BadInput for a rank that the schedule does not have.
  [[nodiscard]] Schedule part(int rank) const;

  // Bytes on the wire of one transfer of this schedule; inside a rank, where no codec is at work, in memory. Throws BadInput if
  // its array does not exist, or is not of a type that the codec takes.
  [[nodiscard]] std::int64_t bytes(const Transfer& transfer) const;

  // The text that from_json reads back exactly; docs/reference/schedule.md describes it. One line, or with `indent` >= 0 broken
  // into lines that a person can read. Throws BadInput if a name is not UTF-8.
  [[nodiscard]] std::string to_json(int indent = -1) const;
  // Throws BadInput with what is wrong and where ("rounds[0].transfers[3].to.slice: ..."). Reads what is well formed;
  // whether it makes sense (ranks and arrays that exist, slices inside them) is for `verify` to say.
  [[nodiscard]] static Schedule from_json(std::string_view text);

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// The whole of all parts, parts[r] being that of rank r (see `Schedule::part`): in each round the transfers from rank 0,
// then those from rank 1, and so on, each in the order of the sender's part. Throws BadInput if that is not what `parts`
// is, and Mismatch, naming both ranks, where one side has a transfer that the other lacks or has in another order.
[[nodiscard]] Schedule merge(std::span<const Schedule> parts);

// Names a transfer in messages: "round 0, transfer 3 (rank 1 array u -> rank 0 array u, 128 elements)".
[[nodiscard]] std::string describe(const Schedule& schedule, int round, int transfer);

}  // namespace onehop
