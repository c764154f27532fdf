// Random verified schedules, and the random numbers of trials.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

#include "onehop/schedule.h"

namespace onehop::soak {

// Random numbers that are the same with every standard library.
class Source {
 public:
  explicit Source(std::uint64_t seed) : engine_(seed) {}
  // A number of 0 to limit - 1.
  [[nodiscard]] std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(limit));
  }
  template <class T>
  [[nodiscard]] T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

// Mixes two numbers into the seed of a part of a trial (the finaliser of SplitMix64).
[[nodiscard]] std::uint64_t mix(std::uint64_t seed, std::uint64_t number);

// A schedule without violations for `ranks` ranks, with a transfer between two of them: random transfers, or a pattern
// with random parameters. Its numbers are of 64 bits.
[[nodiscard]] Schedule random_schedule(Source& source, int ranks);

// The same with long messages: more than 4 KiB, and at most 256 KiB in most of them. It only moves elements.
[[nodiscard]] Schedule long_schedule(Source& source, int ranks);
inline constexpr std::int64_t longest_short_message = 4096;  // bytes
inline constexpr std::int64_t longest_message = 256 << 10;   // bytes

}  // namespace onehop::soak
