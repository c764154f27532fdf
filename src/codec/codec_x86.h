// The x86 loops of the codecs with a scale, over the few steps that differ with the register width. `Wide` provides
//   largest_magnitude(x)             of 32 numbers, as bits; four_magnitudes: of each of four blocks
//   quantise(x, inverse)             32 numbers to 32 signed bytes; quantise_two: two blocks
//   put<adding>(codes, scale, to)    32 signed bytes to numbers, stored or added
//   add_rounded                      32 numbers to codes and back, plus the numbers of other codes
//   to_e4m3, put_e4m3                the same conversions for E4M3
// A block is rounded through its codes, which never leave the registers.
//
// Included only by sources that are compiled for one kind of processor, each for itself (see codec_loops.h).
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

// The lower four bits as Bits4, then the upper two: those of codes i, i + 8, i + 16, i + 24 in byte i.
struct Bits6 {
  static constexpr std::int64_t bytes = 26;
  static constexpr int levels = 31;
  static constexpr Codec codec = Codec::q6;
  static __m256i places() { return _mm256_setr_epi64x(0, 2, 4, 6); }
  static void pack(__m256i codes, std::byte* wire) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(wire), pack_nibbles(codes));
    const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(codes, 4), _mm256_set1_epi8(3));
    const __m256i placed = _mm256_sllv_epi64(upper, places());
    const __m128i half = _mm_or_si128(_mm256_castsi256_si128(placed), _mm256_extracti128_si256(placed, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(wire + 16), _mm_or_si128(half, _mm_unpackhi_epi64(half, half)));
  }
  static __m256i unpack(const std::byte* wire) {
    const __m128i packed = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(wire + 16));
    const __m256i spread = _mm256_srlv_epi64(_mm256_broadcastq_epi64(packed), places());
    const __m256i upper = _mm256_slli_epi16(_mm256_and_si256(spread, _mm256_set1_epi8(3)), 4);
    const __m256i codes = _mm256_or_si256(upper, unpack_nibbles(wire));
    const __m256i sign = _mm256_set1_epi8(32);
    return _mm256_sub_epi8(_mm256_xor_si256(codes, sign), sign);
  }
};

// The codes of two blocks.
struct Codes2 {
  __m256i of[2];
};

template <class Wide, class Layout>
struct SymmetricSteps {
  static constexpr std::int64_t bytes = Layout::bytes;
  static constexpr Codec codec = Layout::codec;
  static void scales(Scales& s) { find_scales<Layout::levels>(s); }
  static __m256i codes(const std::byte* source, float inverse) { return Wide::quantise(source, inverse); }
  static Codes2 two_codes(const std::byte* source, const float* inverse) { return Wide::quantise_two(source, inverse); }
  // The same, and stores or adds the decoded numbers at `to`.
  template <bool adding>
  static Codes2 round_two(const std::byte* source, const Scales& s, int b, std::byte* to) {
    return Wide::template round_two<adding>(source, s.inverse + b, s.scale + b, to);
  }
  static void add_rounded(const std::byte* own, float inverse, float scale, __m256i others, float their_scale,
                          std::byte* to) {
    Wide::add_rounded(own, inverse, scale, others, their_scale, to);
  }
  static void pack(__m256i codes, std::byte* wire) { Layout::pack(codes, wire); }
  static __m256i unpack(const std::byte* wire) { return Layout::unpack(wire); }
  template <bool adding>
  static void put(__m256i codes, float scale, std::byte* target) {
    Wide::template put<adding>(codes, scale, target);
  }
};

template <class Wide>
struct E4m3Steps {
  static constexpr std::int64_t bytes = 34;
  static constexpr Codec codec = Codec::fp8;
  static void scales(Scales& s) { find_e4m3_scales(s); }
  static __m256i codes(const std::byte* source, float inverse) { return Wide::to_e4m3(source, inverse); }
  static Codes2 two_codes(const std::byte* source, const float* inverse) {
    return {codes(source, inverse[0]), codes(source + source_bytes, inverse[1])};
  }
  template <bool adding>
  static Codes2 round_two(const std::byte* source, const Scales& s, int b, std::byte* to) {
    const Codes2 codes = two_codes(source, s.inverse + b);
    for (int i = 0; i < 2; ++i) put<adding>(codes.of[i], as_float(s.scale[b + i]), to + i * source_bytes);
    return codes;
  }
  static void add_rounded(const std::byte* own, float inverse, float scale, __m256i others, float their_scale,
                          std::byte* to) {
    put<false>(codes(own, inverse), scale, to);
    put<true>(others, their_scale, to);
  }
  static void pack(__m256i codes, std::byte* wire) { Bytes8::pack(codes, wire); }
  static __m256i unpack(const std::byte* wire) { return Bytes8::unpack(wire); }
  template <bool adding>
  static void put(__m256i codes, float scale, std::byte* target) {
    Wide::template put_e4m3<adding>(codes, scale * 256.0F, target);
  }
};

// Finds the scales of `blocks` blocks. Returns whether a block is special.
template <class Wide, class Steps>
inline bool scales_of(const std::byte* source, int blocks, Scales& s) {
  int b = 0;
  for (; b + 4 <= blocks; b += 4) Wide::four_magnitudes(source + b * source_bytes, s.magnitude + b);
  for (; b < blocks; ++b) s.magnitude[b] = Wide::largest_magnitude(source + b * source_bytes);
  Steps::scales(s);
  std::uint32_t most = 0;
  for (const std::uint32_t one : s.magnitude) most = one > most ? one : most;
  return most >= special_magnitude;  // may be true only because of an earlier block, which costs only time
}

inline float float_scale(const Scales& s, int block) { return as_float(s.scale[block]); }

// Encodes or rounds one block. Its scale is known unless it is special. `target` may be null, or an unused `wire`.
template <class Wide, class Steps, bool adding, bool writing, bool rounding>
inline void put_block(const Scales& s, int b, const std::byte* source, std::byte* wire, std::byte* target) {
  if (s.magnitude[b] >= special_magnitude) [[unlikely]] {
    if constexpr (!rounding) return encode_special(Steps::codec, source, wire);
    return (adding ? round_add_special : round_special)(Steps::codec, source, writing ? wire : nullptr, target);
  }
  const __m256i codes = Steps::codes(source, s.inverse[b]);
  if constexpr (writing) {
    put_header(s.scale[b], wire);
    Steps::pack(codes, wire + 2);
  }
  if constexpr (rounding) Steps::template put<adding>(codes, float_scale(s, b), target);
}

// Encodes or rounds `blocks` blocks whose scales are known, two at a time.
template <class Wide, class Steps, bool adding, bool writing, bool rounding>
inline void put_blocks(const Scales& s, bool special, int blocks, const std::byte* source, std::byte* wire,
                       std::byte* target) {
  const std::int64_t step = rounding ? source_bytes : 0;
  int b = 0;
  if (!special) [[likely]] {
    for (; b + 2 <= blocks; b += 2, source += 2 * source_bytes, target += 2 * step) {
      Codes2 codes;
      if constexpr (rounding) {
        codes = Steps::template round_two<adding>(source, s, b, target);
      } else {
        codes = Steps::two_codes(source, s.inverse + b);
      }
      if constexpr (!writing) continue;
      for (int i = 0; i < 2; ++i, wire += Steps::bytes) {
        put_header(s.scale[b + i], wire);
        Steps::pack(codes.of[i], wire + 2);
      }
    }
  }
  for (; b < blocks; ++b, source += source_bytes, target += step) {
    put_block<Wide, Steps, adding, writing, rounding>(s, b, source, wire, target);
    if constexpr (writing) wire += Steps::bytes;
  }
}

template <class Wide, class Steps>
void encode_blocks(const std::byte* source, std::int64_t groups, std::byte* wire) {
  Scales s{};
  while (groups > 0) {
    const int now = groups < batch ? static_cast<int>(groups) : batch;
    fetch_to_write(wire, now * Steps::bytes);
    const bool special = scales_of<Wide, Steps>(source, now, s);
    put_blocks<Wide, Steps, false, true, false>(s, special, now, source, wire, nullptr);
    source += now * source_bytes;
    wire += now * Steps::bytes;
    groups -= now;
  }
}

template <class Wide, class Steps, bool adding, bool writing>
void round_blocks(const std::byte* source, std::int64_t groups, std::byte* wire, std::byte* target) {
  Scales s{};
  while (groups > 0) {
    const int now = groups < batch ? static_cast<int>(groups) : batch;
    const bool special = scales_of<Wide, Steps>(source, now, s);
    put_blocks<Wide, Steps, adding, writing, true>(s, special, now, source, wire, target);
    source += now * source_bytes;
    target += now * source_bytes;
    if constexpr (writing) wire += now * Steps::bytes;
    groups -= now;
  }
}

inline std::uint32_t header_of(const std::byte* wire) {
  std::uint16_t header;
  std::memcpy(&header, wire, sizeof header);
  return header;
}

// Adds a few blocks of rounded own numbers and of decoded other numbers.
template <class Wide, class Steps>
inline void add_blocks(const Scales& s, int blocks, const std::byte* own, const std::byte* other, std::byte* sum) {
  for (int b = 0; b < blocks; ++b, own += source_bytes, other += Steps::bytes, sum += source_bytes) {
    const std::uint32_t header = header_of(other);
    if (s.magnitude[b] < special_magnitude && header < 0x8000) [[likely]] {
      Steps::add_rounded(own, s.inverse[b], float_scale(s, b), Steps::unpack(other + 2), as_float(header << 16), sum);
    } else {
      round_special(Steps::codec, own, nullptr, sum);
      decode_add_special(Steps::codec, other, sum);
    }
  }
}

template <class Wide, class Steps>
void reduce_blocks(const Pair& pair, std::int64_t groups, std::byte* wire, std::byte* target) {
  Scales s{};
  const std::byte* own = pair.own;
  const std::byte* other = pair.other;
  fetch(other, batch * Steps::bytes);
  while (groups > 0) {
    const int now = groups < batch ? static_cast<int>(groups) : batch;
    fetch_to_write(wire, now * Steps::bytes);
    scales_of<Wide, Steps>(own, now, s);
    fetch(other + now * Steps::bytes, batch * Steps::bytes);
    add_blocks<Wide, Steps>(s, now, own, other, target);
    if (pair.mean) Wide::halve(target, now);
    const bool special = scales_of<Wide, Steps>(target, now, s);
    put_blocks<Wide, Steps, false, true, true>(s, special, now, target, wire, target);
    own += now * source_bytes;
    other += now * Steps::bytes;
    wire += now * Steps::bytes;
    target += now * source_bytes;
    groups -= now;
  }
}

template <class Steps, bool adding>
void decode_blocks(const std::byte* wire, std::int64_t groups, std::byte* target) {
  constexpr std::int64_t ahead = 1024;
  fetch(wire, groups * Steps::bytes < ahead ? groups * Steps::bytes : ahead);
  for (; groups > 0; --groups, wire += Steps::bytes, target += source_bytes) {
    __builtin_prefetch(wire + ahead);
    const std::uint32_t header = header_of(wire);
    if (header >= 0x8000) [[unlikely]] {
      if constexpr (adding) {
        decode_add_special(Steps::codec, wire, target);
      } else {
        decode_special(Steps::codec, wire, target);
      }
      continue;
    }
    Steps::template put<adding>(Steps::unpack(wire + 2), as_float(header << 16), target);
  }
}

template <class Wide>
void encode_fp16(const std::byte* source, std::int64_t groups, std::byte* wire) {
  for (; groups > 0; --groups, source += source_bytes, wire += source_bytes / 2) Wide::to_fp16(source, wire);
}
template <class Wide>
void encode_bf16(const std::byte* source, std::int64_t groups, std::byte* wire) {
  for (; groups > 0; --groups, source += source_bytes, wire += source_bytes / 2) Wide::to_bf16(source, wire);
}
template <class Wide, bool adding>
void decode_fp16(const std::byte* wire, std::int64_t groups, std::byte* target) {
  for (; groups > 0; --groups, wire += source_bytes / 2, target += source_bytes) {
    Wide::template put_fp16<adding>(wire, target);
  }
}
template <class Wide, bool adding>
void decode_bf16(const std::byte* wire, std::int64_t groups, std::byte* target) {
  for (; groups > 0; --groups, wire += source_bytes / 2, target += source_bytes) {
    Wide::template put_bf16<adding>(wire, target);
  }
}

struct Fp16 {
  template <class Wide, bool adding>
  static void round(const std::byte* source, std::byte* wire, std::byte* target) {
    Wide::to_fp16(source, wire);
    Wide::template put_fp16<adding>(wire, target);
  }
  template <class Wide, bool own_first, bool mean>
  static void reduce(const std::byte* own, const std::byte* other, std::byte* wire, std::byte* target) {
    Wide::template reduce_fp16<own_first, mean>(own, other, wire, target);
  }
};
struct Bf16 {
  template <class Wide, bool adding>
  static void round(const std::byte* source, std::byte* wire, std::byte* target) {
    Wide::to_bf16(source, wire);
    Wide::template put_bf16<adding>(wire, target);
  }
  template <class Wide, bool own_first, bool mean>
  static void reduce(const std::byte* own, const std::byte* other, std::byte* wire, std::byte* target) {
    Wide::template reduce_bf16<own_first, mean>(own, other, wire, target);
  }
};
template <class Wide, class Half, bool adding, bool writing>
void round_halves(const std::byte* source, std::int64_t groups, std::byte* wire, std::byte* target) {
  alignas(64) std::byte here[source_bytes / 2];
  for (; groups > 0; --groups, source += source_bytes, target += source_bytes) {
    Half::template round<Wide, adding>(source, writing ? wire : here, target);
    if constexpr (writing) wire += source_bytes / 2;
  }
}

template <class Wide, class Half, bool own_first, bool mean>
void reduce_halves(const Pair& pair, std::int64_t groups, std::byte* wire, std::byte* target) {
  const std::byte* own = pair.own;
  const std::byte* other = pair.other;
  constexpr std::int64_t ahead = 1024;
  for (; groups > 0; --groups, own += source_bytes, other += source_bytes / 2) {
    __builtin_prefetch(other + ahead);
    __builtin_prefetch(wire + ahead, 1);
    Half::template reduce<Wide, own_first, mean>(own, other, wire, target);
    wire += source_bytes / 2;
    target += source_bytes;
  }
}
template <class Wide, class Half>
void reduce_half(const Pair& pair, std::int64_t groups, std::byte* wire, std::byte* target) {
  const auto run =
      pair.mean ? (pair.own_first ? reduce_halves<Wide, Half, true, true> : reduce_halves<Wide, Half, false, true>)
                : (pair.own_first ? reduce_halves<Wide, Half, true, false> : reduce_halves<Wide, Half, false, false>);
  run(pair, groups, wire, target);
}

template <CodecLoops::Round with_wire, CodecLoops::Round without>
void round_either(const std::byte* source, std::int64_t groups, std::byte* wire, std::byte* target) {
  (wire == nullptr ? without : with_wire)(source, groups, wire, target);
}

template <class Wide, class Steps>
constexpr CodecLoops loops_of{
    encode_blocks<Wide, Steps>,
    decode_blocks<Steps, false>,
    decode_blocks<Steps, true>,
    round_either<round_blocks<Wide, Steps, false, true>, round_blocks<Wide, Steps, false, false>>,
    round_either<round_blocks<Wide, Steps, true, true>, round_blocks<Wide, Steps, true, false>>,
    reduce_blocks<Wide, Steps>};
template <class Wide, class Half>
constexpr CodecLoops::Round round_half =
    round_either<round_halves<Wide, Half, false, true>, round_halves<Wide, Half, false, false>>;
template <class Wide, class Half>
constexpr CodecLoops::Round round_add_half =
    round_either<round_halves<Wide, Half, true, true>, round_halves<Wide, Half, true, false>>;

template <class Wide>
constexpr CodecSet set_of(const char* name) {
  return {name,
          {{},
           {encode_fp16<Wide>, decode_fp16<Wide, false>, decode_fp16<Wide, true>, round_half<Wide, Fp16>,
            round_add_half<Wide, Fp16>, reduce_half<Wide, Fp16>},
           {encode_bf16<Wide>, decode_bf16<Wide, false>, decode_bf16<Wide, true>, round_half<Wide, Bf16>,
            round_add_half<Wide, Bf16>, reduce_half<Wide, Bf16>},
           loops_of<Wide, E4m3Steps<Wide>>,
           loops_of<Wide, SymmetricSteps<Wide, Bytes8>>,
           loops_of<Wide, SymmetricSteps<Wide, Bits6>>,
           loops_of<Wide, SymmetricSteps<Wide, Bits4>>}};
}

}  // namespace
}  // namespace onehop::detail
