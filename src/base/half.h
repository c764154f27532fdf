// The two 16-bit floating-point types, as bits, and their conversion: IEEE binary16 and bfloat16 (the upper half of a
// float32).
#pragma once

#include <bit>
#include <cstdint>

namespace onehop {

struct Float16 {
  std::uint16_t bits = 0;
};

struct BFloat16 {
  std::uint16_t bits = 0;
};

// Exact. A NaN stays a NaN, becomes quiet, and keeps the bits of its payload.
[[nodiscard]] constexpr float to_float(Float16 value) noexcept {
  const std::uint32_t sign = std::uint32_t{value.bits & 0x8000U} << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  if (magnitude > 0x7c00U) return std::bit_cast<float>(sign | 0x7fc00000U | (magnitude << 13));
  if (magnitude == 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U);
  if (magnitude < 0x0400U) {  // zero, or less than the smallest normal number: a multiple of 2^-24
    const float small = static_cast<float>(magnitude) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(small));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (std::uint32_t{127 - 15} << 23)));
}

[[nodiscard]] constexpr float to_float(BFloat16 value) noexcept {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

// Rounds to nearest, ties to even. Numbers out of range become infinite. A NaN stays a NaN and becomes quiet.
[[nodiscard]] constexpr Float16 to_float16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
  } else if (magnitude >= 0x477ff000U) {  // 65520: half way from the largest number to the next power of two
    half = 0x7c00U;
  } else if (magnitude >= 0x38800000U) {  // 2^-14, the smallest normal number
    const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
    half = (rounded - (std::uint32_t{127 - 15} << 23)) >> 13;
  } else {
    // The sum has its last bit worth 2^-24, and is rounded as every sum is.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5F);
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

[[nodiscard]] constexpr BFloat16 to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

}  // namespace onehop
