// All-gathers of numbers, to which every rank contributes as many bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "onehop/error.h"

namespace onehop::base {

// Returns the contributions of the ranks. Throws Mismatch unless each has `bytes` bytes: ranks are in different calls.
template <class Contributions>
[[nodiscard]] Contributions of_one_size(Contributions all, std::size_t bytes) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() == bytes) continue;
    throw Mismatch("expected " + std::to_string(bytes) + " bytes from rank " + std::to_string(rank) + ", found " +
                   std::to_string(all[rank].size()) + "; every rank must make the same calls");
  }
  return all;
}

// The value of every rank.
template <class Group, class T>
[[nodiscard]] std::vector<T> values_of_all(const Group& group, const T& mine) {
  std::vector<T> values;
  for (const auto& bytes : of_one_size(group.allgather(std::as_bytes(std::span(&mine, 1))), sizeof mine))
    std::memcpy(&values.emplace_back(), bytes.data(), sizeof mine);
  return values;
}

}  // namespace onehop::base
