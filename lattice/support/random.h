// Counter-based random numbers for lattices (src/base/philox.h). They depend only on the seed, the place in the whole
// lattice, the sweep and the purpose, so that every grid of ranks draws the same.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

#include "src/base/philox.h"

namespace onehop::lattice::detail {

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t place, std::uint32_t sweep, std::uint32_t purpose)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32) | purpose << 16, sweep, 0} {
  }

  // The next two numbers in (0, 1], multiples of 2^-53.
  std::pair<double, double> two() {
    const auto bits = philox(counter_, key_);
    ++counter_[3];
    const auto number = [](std::uint32_t high, std::uint32_t low) {
      return static_cast<double>((((std::uint64_t{high} << 32) | low) >> 11) + 1) * 0x1p-53;
    };
    return {number(bits[0], bits[1]), number(bits[2], bits[3])};
  }

  // Two independent normal numbers, by the Box-Muller transform of the next two.
  std::pair<double, double> two_normal() {
    const auto [u, v] = two();
    const double length = std::sqrt(-2 * std::log(u));
    return {length * std::cos(2 * std::numbers::pi * v), length * std::sin(2 * std::numbers::pi * v)};
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
};

}  // namespace onehop::lattice::detail
