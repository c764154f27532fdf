// Scales of blocks, and the places of their codes on the wire, for codec_x86.h. Included only by sources that are
// compiled for one instruction set, each for itself (see codec_loops.h).
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "src/codec/codec_loops.h"

namespace onehop::detail {
namespace {  // NOLINT: on purpose, each source has its own

constexpr std::int64_t source_bytes = group_elements * 4;
constexpr int batch = 32;  // blocks whose scales are computed together

inline float as_float(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline std::uint32_t as_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

struct Scales {
  alignas(64) std::uint32_t magnitude[batch];
  alignas(64) std::uint32_t scale[batch];  // bits of a float32, the lower half zero
  alignas(64) float inverse[batch];
};

// As Symmetric::scale and E4m3::scale in codec_block.h, for ordinary blocks.
template <int levels>
inline void find_scales(Scales& s) {
  for (int b = 0; b < batch; ++b) {
    const float exact = as_float(s.magnitude[b]) / static_cast<float>(levels);
    const std::uint32_t rounded = (as_bits(exact) + 0xffff) & 0xffff0000;
    constexpr std::uint32_t least = 2U << 23;  // 2^-125
    s.scale[b] = rounded > least ? rounded : least;
    s.inverse[b] = 1.0F / as_float(s.scale[b]);
  }
}
inline void find_e4m3_scales(Scales& s) {
  for (int b = 0; b < batch; ++b) {
    const auto exponent = static_cast<std::int32_t>((s.magnitude[b] + 0x17ffff) & 0x7f800000);
    const std::int32_t scale = exponent - (8 << 23);
    constexpr std::int32_t least = 12 << 23;  // 2^-115
    s.scale[b] = static_cast<std::uint32_t>(scale > least ? scale : least);
    s.inverse[b] = as_float((254U << 23) - s.scale[b]);
  }
}

inline void put_header(std::uint32_t scale, std::byte* wire) {
  const auto header = static_cast<std::uint16_t>(scale >> 16);
  std::memcpy(wire, &header, sizeof header);
}

// Prefetches bytes on the wire, which are often in another core's cache. The processor alone fetches them too late: a
// block takes so many instructions that few lines are under way at once. Fetching beyond the end is harmless.
constexpr std::int64_t line_bytes = 64;
inline void fetch(const std::byte* from, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += line_bytes) __builtin_prefetch(from + at);
}
inline void fetch_to_write(std::byte* to, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += line_bytes) __builtin_prefetch(to + at, 1);
}

// Moves 32 signed bytes to and from their places on the wire.
struct Bytes8 {
  static constexpr std::int64_t bytes = 34;
  static constexpr int levels = 127;
  static constexpr Codec codec = Codec::q8;
  static void pack(__m256i codes, std::byte* wire) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(wire), codes); }
  static __m256i unpack(const std::byte* wire) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(wire)); }
};

// Code i in the lower half of byte i, code i + 16 in the upper.
inline __m128i pack_nibbles(__m256i codes) {
  const __m128i lower = _mm_and_si128(_mm256_castsi256_si128(codes), _mm_set1_epi8(15));
  const __m128i upper = _mm_and_si128(_mm_slli_epi16(_mm256_extracti128_si256(codes, 1), 4), _mm_set1_epi8(-16));
  return _mm_or_si128(lower, upper);
}
inline __m256i unpack_nibbles(const std::byte* wire) {
  const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(wire));
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(pairs), _mm_srli_epi16(pairs, 4), 1);
  return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

struct Bits4 {
  static constexpr std::int64_t bytes = 18;
  static constexpr int levels = 7;
  static constexpr Codec codec = Codec::q4;
  static void pack(__m256i codes, std::byte* wire) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(wire), pack_nibbles(codes));
  }
  static __m256i unpack(const std::byte* wire) {
    const __m256i signs =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1));
    return _mm256_shuffle_epi8(signs, unpack_nibbles(wire));
  }
};

// Two bits of each code: those of codes i, i + 8, i + 16, i + 24 in byte i. Here the lowest two bits of each byte.
inline __m256i pair_places() { return _mm256_setr_epi64x(0, 2, 4, 6); }
inline void pack_pairs(__m256i codes, std::byte* wire) {
  const __m256i placed = _mm256_sllv_epi64(_mm256_and_si256(codes, _mm256_set1_epi8(3)), pair_places());
  const __m128i half = _mm_or_si128(_mm256_castsi256_si128(placed), _mm256_extracti128_si256(placed, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(wire), _mm_or_si128(half, _mm_unpackhi_epi64(half, half)));
}
inline __m256i unpack_pairs(const std::byte* wire) {
  const __m128i packed = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(wire));
  const __m256i spread = _mm256_srlv_epi64(_mm256_broadcastq_epi64(packed), pair_places());
  return _mm256_and_si256(spread, _mm256_set1_epi8(3));
}

// The lower four bits as Bits4, then the upper two as pairs.
struct Bits6 {
  static constexpr std::int64_t bytes = 26;
  static constexpr int levels = 31;
  static constexpr Codec codec = Codec::q6;
  static void pack(__m256i codes, std::byte* wire) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(wire), pack_nibbles(codes));
    pack_pairs(_mm256_srli_epi16(codes, 4), wire + 16);
  }
  static __m256i unpack(const std::byte* wire) {
    const __m256i upper = _mm256_slli_epi16(unpack_pairs(wire + 16), 4);
    const __m256i codes = _mm256_or_si256(upper, unpack_nibbles(wire));
    const __m256i sign = _mm256_set1_epi8(32);
    return _mm256_sub_epi8(_mm256_xor_si256(codes, sign), sign);
  }
};

// The lower two bits as pairs, then the signs: that of code i is bit i of 32.
struct Bits3 {
  static constexpr std::int64_t bytes = 14;
  static constexpr int levels = 3;
  static constexpr Codec codec = Codec::q3;
  static void pack(__m256i codes, std::byte* wire) {
    pack_pairs(codes, wire);
    const int signs = _mm256_movemask_epi8(codes);
    std::memcpy(wire + 8, &signs, sizeof signs);
  }
  static __m256i unpack(const std::byte* wire) {
    std::int32_t signs;
    std::memcpy(&signs, wire + 8, sizeof signs);
    // Byte i / 8 of the signs in byte i, then its bit i % 8.
    const __m256i bytes_of_signs = _mm256_shuffle_epi8(
        _mm256_set1_epi32(signs), _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
    const __m256i negative = _mm256_cmpeq_epi8(_mm256_and_si256(bytes_of_signs, bit), bit);
    return _mm256_sub_epi8(unpack_pairs(wire), _mm256_and_si256(negative, _mm256_set1_epi8(4)));
  }
};

}  // namespace
}  // namespace onehop::detail
