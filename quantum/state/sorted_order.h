// A radix sort.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onehop::quantum {

// Returns the indices of the numbers in ascending order. The order of equal numbers is stable. At most 2^32 numbers.
[[nodiscard]] std::vector<std::uint32_t> sorted_order(std::span<const std::uint64_t> numbers);

}  // namespace onehop::quantum
