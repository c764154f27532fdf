// Random numbers without a state: what is drawn for a link depends on the seed and a counter alone, so not on ranks or their number.
// Philox4x32 with ten rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, 2011).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace onehop::lattice::detail {

inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// A stream of numbers of its own for every place, sweep and purpose.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t place, std::uint32_t sweep, std::uint32_t purpose)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32) | purpose << 16, sweep, 0} {
  }

  // Two numbers in (0, 1], multiples of 2^-53.
  std::pair<double, double> two() {
    const auto bits = philox(counter_, key_);
    ++counter_[3];
    const auto number = [](std::uint32_t high, std::uint32_t low) {
      return static_cast<double>((((std::uint64_t{high} << 32) | low) >> 11) + 1) * 0x1p-53;
    };
    return {number(bits[0], bits[1]), number(bits[2], bits[3])};
  }

  // Two independent normal numbers.
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
