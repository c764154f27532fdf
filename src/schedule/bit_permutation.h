// The moves of a `BitPermutation`, and its decomposition into steps that work in place.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onehop/schedule.h"

namespace onehop::detail {

// What is wrong with a permutation by itself ("expected ..., found ..."), or an empty string.
[[nodiscard]] std::string permutation_problem(const BitPermutation& permutation);
// What is wrong with it as a round of `schedule`, whose arrays must be without problems.
[[nodiscard]] std::string permutation_problem(const Schedule& schedule, const BitPermutation& permutation);

// All its transfers, or those from or to one rank, sorted by sender and receiver; the first `most` of them. Needs a
// permutation without problems. A few numbers can stand for more transfers than any memory holds: whoever compares with
// a list that came from outside needs one more than that list has.
[[nodiscard]] std::vector<Transfer> permutation_transfers(const BitPermutation& permutation, Codec codec,
                                                          std::optional<int> only_rank,
                                                          std::size_t most = std::numeric_limits<std::size_t>::max());

// The elements of a rank that do not keep their place.
[[nodiscard]] std::vector<Place> permutation_moves(const BitPermutation& permutation, int rank);

// Exchanges of two bits each that make the permutation, one after the other: the cycles of `to`, each from its lowest
// bit.
[[nodiscard]] std::vector<std::pair<int, int>> swaps_of(const std::vector<int>& to);

// A permutation as two steps. `exchange` brings every element to its final rank, into the place that the element with
// the same other local bits leaves there; its cycles have at most one local bit each, so that all elements between the
// same ranks move alike. `inside` are the exchanges of local bits that follow on every rank, each of them in place.
struct PermutationSteps {
  BitPermutation exchange;
  std::vector<std::pair<int, int>> inside;
};
[[nodiscard]] PermutationSteps steps_of(const BitPermutation& permutation);

}  // namespace onehop::detail
