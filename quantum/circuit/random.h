// Counter-based random numbers for circuits (src/base/philox.h). They depend only on the seed, the shot and the event,
// so that every number of ranks draws the same.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "src/base/philox.h"

namespace onehop::quantum::detail {

inline std::uint64_t random_word(std::uint64_t seed, std::uint64_t shot, std::uint64_t event) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto bits = philox({low(shot), high(shot), low(event), high(event)}, {low(seed), high(seed)});
  return (std::uint64_t{bits[0]} << 32) | bits[1];
}

// Returns a number in [0, 1), a multiple of 2^-53.
inline double uniform(std::uint64_t seed, std::uint64_t shot, std::uint64_t event) {
  return static_cast<double>(random_word(seed, shot, event) >> 11) * 0x1p-53;
}

// The seed of the samples at the end of a run with a record, so that runs with different records draw independently.
inline std::uint64_t record_seed(std::uint64_t seed, std::span<const int> record) {
  std::uint64_t word = random_word(seed, 0, ~record.size());
  for (const int choice : record) word = random_word(seed, word, ~static_cast<std::uint64_t>(choice));
  return word;
}

}  // namespace onehop::quantum::detail
