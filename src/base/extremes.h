// The smaller and the larger of two numbers, as every reduction combines them (docs/reference/allreduce.md): equal
// numbers give the first, and a NaN anywhere gives a NaN, the first one. A signaling NaN becomes quiet.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace onehop::base {

// Returns a number as it is, a NaN with its sign and payload, but quiet.
template <class T>
[[nodiscard]] constexpr T quiet(T value) noexcept {
  if constexpr (std::floating_point<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr Bits quiet_bit = Bits{1} << (sizeof(T) == 4 ? 22U : 51U);
    return std::bit_cast<T>(std::bit_cast<Bits>(value) | (value != value ? quiet_bit : 0));
  }
  return value;
}

template <class T>
[[nodiscard]] constexpr T smaller(T a, T b) noexcept {
  return quiet(a <= b || a != a ? a : b);
}

template <class T>
[[nodiscard]] constexpr T larger(T a, T b) noexcept {
  return quiet(a >= b || a != a ? a : b);
}

}  // namespace onehop::base
