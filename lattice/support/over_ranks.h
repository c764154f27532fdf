// Values of all ranks, compared.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "onehop/group.h"
#include "src/base/extremes.h"
#include "src/base/one_size.h"

namespace onehop::lattice::detail {

// Replaces each number by the largest one over the ranks, or by a NaN. Collective, with as many numbers on every rank.
inline void largest_over_ranks(const Group& group, std::span<double> numbers) {
  std::vector<double> theirs(numbers.size());
  for (const auto& bytes : base::of_one_size(group.allgather(std::as_bytes(numbers)), numbers.size_bytes())) {
    std::memcpy(theirs.data(), bytes.data(), numbers.size_bytes());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = base::larger(numbers[i], theirs[i]);
  }
}

}  // namespace onehop::lattice::detail
