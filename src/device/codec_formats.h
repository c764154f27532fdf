// The formats of docs/reference/codecs.md for cards: one block of 32 numbers in words, and back. The bits are those of
// src/codec, so this is compiled with -ffp-contract=off. A format defines
//   words                  32-bit words of the codes of a block
//   headers                whether a block has a scale, and so a header of 16 bits
//   encode(x, words)       of the numbers x[0], ..., x[31], which it may change; returns the header
//   decode(words, header, take)   calls take(i, number) for i from 0 to 31
#pragma once

#include "src/device/team.h"

#ifdef __clang__
#define ONEHOP_UNROLL _Pragma("clang loop unroll(full)")
#define ONEHOP_ROLL _Pragma("clang loop unroll(disable)")
#else
#define ONEHOP_UNROLL _Pragma("GCC unroll 32")
#define ONEHOP_ROLL
#endif

namespace onehop::device {

inline constexpr uint32_t block_numbers = 32;
inline constexpr uint32_t infinite_bits = 0x7f800000;

#ifdef ONEHOP_CARD
// A card's own conversions, which differ in NaN alone.
inline float widen(uint32_t bits) { return __builtin_bit_cast(_Float16, static_cast<uint16_t>(bits)); }
inline uint32_t narrow(float value) { return __builtin_bit_cast(uint16_t, static_cast<_Float16>(value)); }
#else
inline float widen(uint32_t bits) {
  const uint32_t sign = (bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  const uint32_t small = bits_of(static_cast<float>(magnitude) * 0x1p-24F);
  const uint32_t normal = magnitude >= 0x7c00 ? infinite_bits : (magnitude << 13) + (112U << 23);
  return float_of(sign | (magnitude < 0x400 ? small : normal));
}
inline uint32_t narrow(float value) {
  const uint32_t magnitude = bits_of(value) & 0x7fffffff;
  const uint32_t small = bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F);
  const uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112U << 23)) >> 13;
  const uint32_t finite = magnitude < 0x38800000 ? small : normal;
  return (bits_of(value) >> 16 & 0x8000) | (magnitude >= 0x477ff000 ? 0x7c00 : finite);
}
#endif

inline float from_float16(uint32_t bits) {
  return (bits & 0x7fff) > 0x7c00 ? float_of((bits & 0x8000) << 16 | 0x7fc00000 | (bits & 0x3ff) << 13) : widen(bits);
}
inline uint32_t to_float16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t nan = (bits >> 16 & 0x8000) | 0x7e00 | (bits >> 13 & 0x3ff);
  return (bits & 0x7fffffff) > infinite_bits ? nan : narrow(value);
}

inline float from_bfloat16(uint32_t bits) { return float_of(bits << 16); }

inline uint32_t to_bfloat16(float value) {
  const uint32_t bits = bits_of(value);
  return (bits & 0x7fffffff) > infinite_bits ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

template <uint32_t (*to_half)(float), float (*from_half)(uint32_t)>
struct HalfFormat {
  static constexpr uint32_t words = 16;
  static constexpr bool headers = false;

  static uint32_t encode(float* x, uint32_t* to) {
    ONEHOP_UNROLL for (uint32_t i = 0; i < block_numbers; i += 2) {
      to[i / 2] = to_half(x[i]) | to_half(x[i + 1]) << 16;
    }
    return 0;
  }
  template <class Take>
  static void decode(const uint32_t* from, uint32_t /*header*/, const Take& take) {
    ONEHOP_UNROLL for (uint32_t i = 0; i < block_numbers; ++i) take(i, from_half(from[i / 2] >> (i % 2 * 16) & 0xffff));
  }
};
using Fp16 = HalfFormat<to_float16, from_float16>;
using Bf16 = HalfFormat<to_bfloat16, from_bfloat16>;

// Codes are integers from -levels to levels; in a special block one less, and the ends mean the infinities. `infinity`
// and `nan` are the numbers that have the codes of infinity and NaN.
template <int32_t levels, uint32_t bits>
struct Symmetric {
  static constexpr uint32_t code_bits = bits;
  static constexpr float infinity = levels;
  static constexpr float nan = -levels - 1;

  static float scale(float m, bool special) {
    const float exact = m / static_cast<float>(special ? levels - 1 : levels);
    const float up = float_of((bits_of(exact) + 0xffff) & 0xffff0000);
    return up > 0x1p-125F ? up : 0x1p-125F;
  }
  static float inverse(float scale) { return 1.0F / scale; }
  static uint32_t code(float y) { return bits_of(y + 0x1.8p23F) & ((1U << bits) - 1); }
  static float value(uint32_t code, float scale) { return static_cast<float>(signed_of(code)) * scale; }
  static bool is_infinity(uint32_t code) { return signed_of(code) == levels || signed_of(code) == -levels; }
  static bool is_nan(uint32_t code) { return signed_of(code) == -levels - 1; }

 private:
  static int32_t signed_of(uint32_t code) { return static_cast<int32_t>(code << (32 - bits)) >> (32 - bits); }
};

// The 8-bit floating-point numbers E4M3; the scale is a power of two.
struct E4m3 {
  static constexpr uint32_t code_bits = 8;
  static constexpr float infinity = 448;
  static constexpr float nan = 480;

  static float scale(float m, bool special) {
    const uint32_t exponent = (bits_of(m) + (special ? 0x280000 : 0x17ffff)) & infinite_bits;
    return float_of(exponent > 20U << 23 ? exponent - (8U << 23) : 12U << 23);
  }
  static float inverse(float scale) { return float_of((254U << 23) - bits_of(scale)); }
  static uint32_t code(float y) {
    const uint32_t magnitude = bits_of(y) & 0x7fffffff;
    const uint32_t small = bits_of(float_of(magnitude) + 0x1p14F) - bits_of(0x1p14F);
    const uint32_t normal = ((magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20) - (120U << 3);
    return (magnitude < bits_of(0x1p-6F) ? small : normal) | (bits_of(y) >> 24 & 0x80);
  }
  // As float16 with the exponent 8 too low, which has the same subnormal numbers. The scale may be 2^120: it comes
  // last.
  static float value(uint32_t code, float scale) {
    return from_float16((code & 0x7f) << 7 | (code & 0x80) << 8) * 256.0F * scale;
  }
  static bool is_infinity(uint32_t code) { return (code & 0x7f) == 0x7e; }
  static bool is_nan(uint32_t code) { return (code & 0x7f) == 0x7f; }
};

// Where the bits of code i are on the wire: calls piece(word, shift in the word, lowest bit of the code, bits).
template <uint32_t code_bits, class Piece>
inline void place(uint32_t i, const Piece& piece) {
  if constexpr (code_bits == 8) {
    piece(i / 4, i % 4 * 8, 0, 8);
  } else if constexpr (code_bits == 3) {
    piece(i % 8 / 4, i % 4 * 8 + i / 8 * 2, 0, 2);
    piece(2, i, 2, 1);
  } else {
    piece(i % 16 / 4, i % 4 * 8 + i / 16 * 4, 0, 4);
    if constexpr (code_bits == 6) piece(4 + i % 8 / 4, i % 4 * 8 + i / 8 * 2, 4, 2);
  }
}

template <class Numbers>
struct Scaled {
  static constexpr uint32_t words = Numbers::code_bits;  // 32 numbers
  static constexpr bool headers = true;

  static uint32_t encode(float* x, uint32_t* to) {
    uint32_t most = 0;
    ONEHOP_UNROLL for (uint32_t i = 0; i < block_numbers; ++i) {
      const uint32_t magnitude = bits_of(x[i]) & 0x7fffffff;
      most = magnitude > most ? magnitude : most;
    }
    const bool special = most >= 0x7f000000;
    float scale = 0;
    float inverse = 1;
    if (special) {
      scale = prepare_special(x);
    } else {
      scale = Numbers::scale(float_of(most), false);
      inverse = Numbers::inverse(scale);
    }
    ONEHOP_UNROLL for (uint32_t w = 0; w < words; ++w) to[w] = 0;
    ONEHOP_UNROLL for (uint32_t i = 0; i < block_numbers; ++i) {
      const uint32_t code = Numbers::code(x[i] * inverse);
      place<words>(i, [&](uint32_t word, uint32_t shift, uint32_t lowest, uint32_t bits) {
        to[word] |= (code >> lowest & ((1U << bits) - 1)) << shift;
      });
    }
    return bits_of(scale) >> 16 | (special ? 0x8000 : 0);
  }

  template <class Take>
  static void decode(const uint32_t* from, uint32_t header, const Take& take) {
    const float scale = from_bfloat16(header & 0x7fff);
    if ((header & 0x8000) == 0) {
      ONEHOP_UNROLL for (uint32_t i = 0; i < block_numbers; ++i) take(i, Numbers::value(code_of(from, i), scale));
      return;
    }
    ONEHOP_ROLL for (uint32_t i = 0; i < block_numbers; ++i) {
      const uint32_t code = code_of(from, i);
      uint32_t number = bits_of(Numbers::value(code, scale));
      const uint32_t sign = number & 0x80000000;
      if ((number & 0x7fffffff) >= infinite_bits) number = sign | (infinite_bits - 1);
      if (Numbers::is_infinity(code)) number = sign | infinite_bits;
      take(i, float_of(Numbers::is_nan(code) ? 0x7fc00000 : number));
    }
  }

 private:
  static uint32_t code_of(const uint32_t* from, uint32_t i) {
    uint32_t code = 0;
    place<words>(i, [&](uint32_t word, uint32_t shift, uint32_t lowest, uint32_t bits) {
      code |= (from[word] >> shift & ((1U << bits) - 1)) << lowest;
    });
    return code;
  }

  // Divides the numbers of a special block by its scale, which it returns; infinities and NaN become the quotients that
  // have their codes.
  static float prepare_special(float* x) {
    uint32_t most = 0;
    ONEHOP_ROLL for (uint32_t i = 0; i < block_numbers; ++i) {
      const uint32_t magnitude = bits_of(x[i]) & 0x7fffffff;
      most = magnitude > most && magnitude < infinite_bits ? magnitude : most;
    }
    const float scale = Numbers::scale(float_of(most), true);
    const float inverse = Numbers::inverse(scale);
    ONEHOP_ROLL for (uint32_t i = 0; i < block_numbers; ++i) {
      const uint32_t magnitude = bits_of(x[i]) & 0x7fffffff;
      const float mark = magnitude > infinite_bits ? Numbers::nan : x[i] < 0 ? -Numbers::infinity : Numbers::infinity;
      x[i] = magnitude < infinite_bits ? x[i] * inverse : mark;
    }
    return scale;
  }
};
using Fp8 = Scaled<E4m3>;
using Q8 = Scaled<Symmetric<127, 8>>;
using Q6 = Scaled<Symmetric<31, 6>>;
using Q4 = Scaled<Symmetric<7, 4>>;
using Q3 = Scaled<Symmetric<3, 3>>;

}  // namespace onehop::device
