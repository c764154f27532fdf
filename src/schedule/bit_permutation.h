// The moves of a `BitPermutation`, and its decomposition into steps that work in place.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onehop/schedule.h"

namespace onehop::detail {

// Returns the error of a permutation by itself ("expected ..., found ..."), or an empty string.
[[nodiscard]] std::string permutation_problem(const BitPermutation& permutation);
// Returns its error as a round of `schedule`, whose arrays must be valid.
[[nodiscard]] std::string permutation_problem(const Schedule& schedule, const BitPermutation& permutation);

// Returns the transfers of a valid permutation, or those from or to one rank, sorted by sender and receiver; at most
// the first `max_transfers`. A short permutation can stand for more transfers than fit in memory, so a caller that
// compares with a list from outside asks for one more than the list has.
[[nodiscard]] std::vector<Transfer> permutation_transfers(
    const BitPermutation& permutation, Codec codec, std::optional<int> only_rank,
    std::size_t max_transfers = std::numeric_limits<std::size_t>::max());

// The transfers between two ranks that exchange elements: one slice has a limited number of dimensions.
[[nodiscard]] double slices_per_pair(const BitPermutation& permutation);

// The elements of a rank that do not keep their place.
[[nodiscard]] std::vector<Place> permutation_moves(const BitPermutation& permutation, int rank);

// Decomposes a permutation into exchanges of two bits, to be applied in order: the cycles of `to`, each from its lowest
// bit.
[[nodiscard]] std::vector<std::pair<int, int>> swaps_of(const std::vector<int>& to);

// A permutation as two steps. `exchange` moves every element to its final rank, into the place that the element with
// the same other local bits leaves there. Its cycles have at most one local bit each, so all elements between two ranks
// move alike. `inside` lists the exchanges of local bits that follow on every rank, each in place.
struct PermutationSteps {
  BitPermutation exchange;
  std::vector<std::pair<int, int>> inside;
};
[[nodiscard]] PermutationSteps steps_of(const BitPermutation& permutation);

}  // namespace onehop::detail
