// Reference code of the formats with a scale per block of 32 numbers (docs/reference/codecs.md). A format defines
//   scale(m, special)      the block's scale for the largest finite magnitude m
//   code(y), value(c, s)   of y = x / s, rounded; and back
//   marks for infinities and NaN in a special block, and the order of the codes on the wire.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/half.h"

namespace onehop::detail {

inline constexpr std::size_t block = 32;
inline constexpr std::size_t header_bytes = 2;
inline constexpr std::uint32_t infinite = 0x7f800000;
inline constexpr float largest = 0x1.fffffep127F;
using Codes = std::array<std::uint8_t, block>;

[[nodiscard]] constexpr std::uint32_t bits_of(float value) noexcept { return std::bit_cast<std::uint32_t>(value); }
[[nodiscard]] constexpr float float_of(std::uint32_t bits) noexcept { return std::bit_cast<float>(bits); }

// Drops the lowest `n` bits of a magnitude, rounding to nearest, ties to even.
[[nodiscard]] constexpr std::uint32_t drop_bits(std::uint32_t magnitude, unsigned n) noexcept {
  return (magnitude + (1U << (n - 1)) - 1 + ((magnitude >> n) & 1)) >> n;
}

// To the nearest integer, ties to even, of |value| < 2^22.
[[nodiscard]] constexpr int nearest(float value) noexcept {
  constexpr float shift = 0x1.8p23F;
  return static_cast<int>(bits_of(value + shift)) - static_cast<int>(bits_of(shift));
}

// Bits `at` and `at` + 1 of each code: those of codes i, i + 8, i + 16, i + 24 in byte i, of 8 bytes.
template <unsigned at>
void pack_pairs(const Codes& codes, std::byte* wire) noexcept {
  const auto pair = [&](std::size_t i) { return codes[i] >> at & 3; };
  for (std::size_t i = 0; i < 8; ++i) {
    wire[i] = static_cast<std::byte>(pair(i) | pair(i + 8) << 2 | pair(i + 16) << 4 | pair(i + 24) << 6);
  }
}
template <unsigned at>
void unpack_pairs(const std::byte* wire, Codes& codes) noexcept {
  for (std::size_t i = 0; i < block; ++i) {
    codes[i] |= static_cast<std::uint8_t>((static_cast<unsigned>(wire[i % 8]) >> (i / 8 * 2) & 3) << at);
  }
}

// Codes are integers from -levels to levels; in a special block one less, and the ends mean the infinities.
template <int levels, int bits>
struct Symmetric {
  static constexpr std::size_t bytes = header_bytes + block * bits / 8;
  static constexpr std::uint8_t nan = static_cast<std::uint8_t>(-levels - 1);

  static float scale(float m, bool special) noexcept {
    const float exact = m / static_cast<float>(special ? levels - 1 : levels);
    return std::max(float_of((bits_of(exact) + 0xffff) & 0xffff0000), 0x1p-125F);
  }
  static float inverse(float scale) noexcept { return 1.0F / scale; }
  static std::uint8_t code(float y) noexcept { return static_cast<std::uint8_t>(nearest(y)); }
  static float value(std::uint8_t code, float scale) noexcept {
    return static_cast<float>(static_cast<std::int8_t>(code)) * scale;
  }
  static std::uint8_t infinity(bool negative) noexcept {
    return static_cast<std::uint8_t>(negative ? -levels : levels);
  }
  static bool is_infinity(std::uint8_t code) noexcept { return code == infinity(false) || code == infinity(true); }
  static bool is_nan(std::uint8_t code) noexcept { return code == nan; }

  static void pack(const Codes& codes, std::byte* wire) noexcept {
    if constexpr (bits == 8) {
      std::memcpy(wire, codes.data(), block);
      return;
    }
    if constexpr (bits == 3) {
      pack_pairs<0>(codes, wire);
      for (std::size_t i = 0; i < 4; ++i) {
        unsigned signs = 0;
        for (std::size_t j = 0; j < 8; ++j) signs |= (codes[8 * i + j] >> 2 & 1U) << j;
        wire[8 + i] = static_cast<std::byte>(signs);
      }
      return;
    }
    for (std::size_t i = 0; i < 16; ++i) {
      wire[i] = static_cast<std::byte>((codes[i] & 15) | codes[i + 16] << 4);
    }
    if constexpr (bits == 6) pack_pairs<4>(codes, wire + 16);
  }

  static void unpack(const std::byte* wire, Codes& codes) noexcept {
    if constexpr (bits == 8) {
      std::memcpy(codes.data(), wire, block);
      return;
    }
    codes.fill(0);
    if constexpr (bits == 3) {
      unpack_pairs<0>(wire, codes);
      for (std::size_t i = 0; i < 32; ++i) {
        codes[i] |= static_cast<std::uint8_t>((static_cast<unsigned>(wire[8 + i / 8]) >> (i % 8) & 1) << 2);
      }
    } else {
      for (std::size_t i = 0; i < 16; ++i) {
        const auto pair = static_cast<std::uint8_t>(wire[i]);
        codes[i] = pair & 15;
        codes[i + 16] = pair >> 4;
      }
      if constexpr (bits == 6) unpack_pairs<4>(wire + 16, codes);
    }
    constexpr unsigned sign = 1U << (bits - 1);
    for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>((code ^ sign) - sign);
  }
};

// The 8-bit floating-point numbers E4M3 of the Open Compute Project: largest 448, smallest 2^-9. The scale is a power
// of two.
struct E4m3 {
  static constexpr std::size_t bytes = header_bytes + block;
  static constexpr std::uint8_t nan = 0x7f;

  // The smallest power of two with which m becomes at most 448, or 416 in a special block.
  static float scale(float m, bool special) noexcept {
    const auto round_up = static_cast<std::int32_t>(special ? 0x280000 : 0x17ffff);
    const std::int32_t exponent = (static_cast<std::int32_t>(bits_of(m)) + round_up) & 0x7f800000;
    return float_of(static_cast<std::uint32_t>(std::max(exponent - (8 << 23), 12 << 23)));
  }
  static float inverse(float scale) noexcept { return float_of((254U << 23) - bits_of(scale)); }
  static std::uint8_t code(float y) noexcept {
    const std::uint32_t bits = bits_of(y);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    const std::uint32_t small = bits_of(float_of(magnitude) + 0x1p14F) - bits_of(0x1p14F);
    const std::uint32_t normal = drop_bits(magnitude, 20) - (120U << 3);
    return static_cast<std::uint8_t>((magnitude < bits_of(0x1p-6F) ? small : normal) | (bits >> 24 & 0x80));
  }
  static float value(std::uint8_t code, float scale) noexcept {
    // As float16 with the exponent 8 too low, which has the same subnormal numbers. The scale may be 2^120: it comes
    // last.
    const Float16 half{static_cast<std::uint16_t>((code & 0x7f) << 7 | (code & 0x80) << 8)};
    return to_float(half) * 256.0F * scale;
  }
  static std::uint8_t infinity(bool negative) noexcept { return negative ? 0xfe : 0x7e; }
  static bool is_infinity(std::uint8_t code) noexcept { return (code & 0x7f) == 0x7e; }
  static bool is_nan(std::uint8_t code) noexcept { return (code & 0x7f) == nan; }
  static void pack(const Codes& codes, std::byte* wire) noexcept { std::memcpy(wire, codes.data(), block); }
  static void unpack(const std::byte* wire, Codes& codes) noexcept { std::memcpy(codes.data(), wire, block); }
};

using Q8 = Symmetric<127, 8>;
using Q6 = Symmetric<31, 6>;
using Q4 = Symmetric<7, 4>;
using Q3 = Symmetric<3, 3>;

}  // namespace onehop::detail
