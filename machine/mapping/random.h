// A small generator of random numbers (SplitMix64), the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onehop::detail {

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  [[nodiscard]] std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }
  // A number from 0 to limit - 1; limit < 2^32.
  [[nodiscard]] std::size_t below(std::size_t limit) noexcept {
    return static_cast<std::size_t>(((next() >> 32) * static_cast<std::uint64_t>(limit)) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace onehop::detail
