// A `Schedule` is rounds of transfers between ranks: pure data, no memory, no network. The same object is counted
// (count.h), verified (verify.h), saved as JSON, and executed (plan.h).
//
// Within a round all transfers happen at once: each reads what its source held before the round. Rounds follow each
// other.
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

// How an arriving element is combined with the present one. All but `replace` need an element type other than `bytes`.
enum class Combine : std::uint8_t { replace, add, min, max, prod };

[[nodiscard]] std::string_view to_string(Combine combine);
[[nodiscard]] Combine combine_from_string(std::string_view name);

// An array that the schedule reads or writes. Every rank has one, possibly of a different length.
struct ArraySpec {
  std::string name;
  // At least 1. For every type but `bytes`, a multiple of the size of that type: a complex number is one element of two
  // numbers.
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

// One data movement. A transfer between a rank and itself is a local copy and uses no channel.
struct Transfer {
  Place from;
  Place to;
  Combine combine = Combine::replace;
  Codec codec = Codec::raw;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// A permutation of the bits of an index that runs over the elements of one array on all ranks: the lower `local_bits`
// bits number the element on its rank, the others the rank. The element at index x goes to the index whose bit to[i] is
// bit i of x.
struct BitPermutation {
  int array = 0;
  int local_bits = 0;
  std::vector<int> to;  // one entry per bit of the index, local bits first
  friend bool operator==(const BitPermutation&, const BitPermutation&) = default;
};

struct Round {
  std::vector<Transfer> transfers;
  // States that the transfers are exactly the moves of this permutation, as `permute_bits` (patterns.h) lists them. The
  // round may then work in place along any cycle of ranks and within a rank, which is forbidden otherwise. `verify` and
  // plans check the statement.
  std::optional<BitPermutation> permutation = std::nullopt;
  friend bool operator==(const Round&, const Round&) = default;
};

// Upper limit of `Schedule::ranks`. It bounds the memory of `count`, which keeps numbers for every rank.
inline constexpr int max_ranks = 1 << 20;

struct Schedule {
  std::string name;
  int ranks = 1;
  std::vector<ArraySpec> arrays;
  std::vector<Round> rounds;
  // The slices that the rounds must write in total; checked by `verify`.
  std::vector<Place> must_cover;

  // Returns the part of `rank`: the transfers from it or to it, in the same rounds and order, and its must_cover.
  // Throws BadInput for a rank that the schedule does not have.
  [[nodiscard]] Schedule part(int rank) const;

  // Bytes of one transfer on the wire; for a local copy, which no codec encodes, bytes in memory. Throws BadInput if
  // the array does not exist or its type does not suit the codec.
  [[nodiscard]] std::int64_t bytes(const Transfer& transfer) const;

  // Returns the schedule as JSON; from_json restores it exactly. docs/reference/schedule.md describes it. The
  // text is one line, or several lines indented by `indent` >= 0. Throws BadInput if a name is not UTF-8.
  [[nodiscard]] std::string to_json(int indent = -1) const;
  // Reads the text of to_json. Throws BadInput with the place of an error ("rounds[0].transfers[3].to.slice: ...").
  // Accepts every well-formed schedule; `verify` checks that its ranks and arrays exist and that slices lie inside
  // them.
  [[nodiscard]] static Schedule from_json(std::string_view text);

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Joins the parts of all ranks: parts[r] is the part of rank r (see `Schedule::part`). Each round lists the transfers
// from rank 0, then those from rank 1, and so on, in the order of the sender's part. Throws BadInput unless every rank
// has one part, and Mismatch with both ranks if one has a transfer that the other lacks or has in another order.
[[nodiscard]] Schedule merge(std::span<const Schedule> parts);

// Describes a transfer for error messages: "round 0, transfer 3 (rank 1 array u -> rank 0 array u, 128 elements)".
[[nodiscard]] std::string describe(const Schedule& schedule, int round, int transfer);

}  // namespace onehop
