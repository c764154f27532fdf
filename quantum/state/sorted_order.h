// Numbers in order, faster than by comparing them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onehop::quantum {

// The places of the numbers, the smallest first; of equal ones the first first. At most 2^32 numbers.
[[nodiscard]] std::vector<std::uint32_t> sorted_order(std::span<const std::uint64_t> numbers);

}  // namespace onehop::quantum
