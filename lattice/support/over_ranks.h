// Values of all ranks, compared.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "onehop/group.h"

namespace onehop::lattice::detail {

// Replaces each number by the largest one over the ranks. Collective, with the same number of numbers on every rank.
inline void largest_over_ranks(const Group& group, std::span<double> numbers) {
  std::vector<double> theirs(numbers.size());
  for (const auto& bytes : group.allgather(std::as_bytes(numbers))) {
    std::memcpy(theirs.data(), bytes.data(), numbers.size_bytes());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::max(numbers[i], theirs[i]);
  }
}

}  // namespace onehop::lattice::detail
