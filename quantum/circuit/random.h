// Counter-based random numbers for circuits (src/base/philox.h). They depend only on the seed, the shot and the event,
// so that every number of ranks draws the same.
#pragma once

#include <array>
#include <cstdint>

#include "src/base/philox.h"

namespace onehop::quantum::detail {

// Returns a number in [0, 1), a multiple of 2^-53.
inline double uniform(std::uint64_t seed, std::uint64_t shot, std::uint64_t event) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto bits = philox({low(shot), high(shot), low(event), high(event)}, {low(seed), high(seed)});
  return static_cast<double>(((std::uint64_t{bits[0]} << 32) | bits[1]) >> 11) * 0x1p-53;
}

}  // namespace onehop::quantum::detail
