// The x86 loops of the codecs with a scale, over the few steps that differ with the register width. `Wide` provides
//   largest_magnitude(x)             of 32 numbers, as bits; four_magnitudes: of each of four blocks
//   quantise(x, inverse)             32 numbers to 32 signed bytes; quantise_two: two blocks
//   put<adding>(codes, scale, to)    32 signed bytes to numbers, stored or added
//   add_rounded                      32 numbers to codes and back, plus the numbers of other codes
//   to_e4m3, put_e4m3                the same conversions for E4M3
//   to_fp16, from_fp16, Bf16         for numbers of half the length
// A block is rounded through its codes, which never leave the registers.
//
// Included only by sources that are compiled for one kind of processor, each for itself (see codec_loops.h).
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "src/codec/codec_loops.h"
#include "src/codec/codec_x86_layout.h"

namespace onehop::detail {
namespace {  // NOLINT: on purpose, each source has its own

// The codes of two blocks.
struct Codes2 {
  __m256i of[2];
};

template <class Wide, class Layout>
struct SymmetricSteps : Layout {
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
  template <bool adding>
  static void put(__m256i codes, float scale, std::byte* target) {
    Wide::template put<adding>(codes, scale, target);
  }
};

template <class Wide>
struct E4m3Steps : Bytes8 {
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
    const CodecLoops& loops = special_loops(Steps::codec);
    if constexpr (!rounding) return loops.encode(source, 1, wire);
    return (adding ? loops.round_add : loops.round)(source, 1, writing ? wire : nullptr, target);
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
      const CodecLoops& loops = special_loops(Steps::codec);
      loops.round(own, 1, nullptr, sum);
      loops.decode_add(other, 1, sum);
    }
  }
}

template <class Wide>
inline void halve(std::byte* numbers, std::int64_t blocks) {
  constexpr std::int64_t step = sizeof(Wide::load(nullptr));
  for (std::int64_t at = 0; at < blocks * source_bytes; at += step)
    Wide::template store<false>(Wide::load(numbers + at) * 0.5F, numbers + at);
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
    if (pair.mean) halve<Wide>(target, now);
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
      const CodecLoops& loops = special_loops(Steps::codec);
      (adding ? loops.decode_add : loops.decode)(wire, 1, target);
      continue;
    }
    Steps::template put<adding>(Steps::unpack(wire + 2), as_float(header << 16), target);
  }
}

// The sum of two vectors in the order of the ranks, or their mean.
template <bool own_first, bool mean, class Vector>
inline Vector added(Vector own, Vector other) {
  const Vector sum = own_first ? own + other : other + own;
  return mean ? sum * 0.5F : sum;
}

// `Wide` converts a vector of numbers to one of half as many bytes and back.
template <class Wide>
struct Fp16 {
  static constexpr std::int64_t step = sizeof(Wide::load(nullptr));
  static void encode(const std::byte* source, std::byte* wire) {
    for (std::int64_t at = 0; at < source_bytes; at += step)
      Wide::store_half(Wide::to_fp16(Wide::load(source + at)), wire + at / 2);
  }
  template <bool adding>
  static void decode(const std::byte* wire, std::byte* target) {
    for (std::int64_t at = 0; at < source_bytes; at += step)
      Wide::template store<adding>(Wide::from_fp16(Wide::load_half(wire + at / 2)), target + at);
  }
  template <bool own_first, bool mean>
  static void reduce(const std::byte* own, const std::byte* other, std::byte* wire, std::byte* target) {
    for (std::int64_t at = 0; at < source_bytes; at += step) {
      const auto mine = Wide::from_fp16(Wide::to_fp16(Wide::load(own + at)));
      const auto exact = added<own_first, mean>(mine, Wide::from_fp16(Wide::load_half(other + at / 2)));
      const auto sum = Wide::to_fp16(exact);
      Wide::store_half(sum, wire + at / 2);
      Wide::template store<false>(Wide::from_fp16(sum), target + at);
    }
  }
};

template <class Half>
void encode_halves(const std::byte* source, std::int64_t groups, std::byte* wire) {
  for (; groups > 0; --groups, source += source_bytes, wire += source_bytes / 2) Half::encode(source, wire);
}
template <class Half, bool adding>
void decode_halves(const std::byte* wire, std::int64_t groups, std::byte* target) {
  for (; groups > 0; --groups, wire += source_bytes / 2, target += source_bytes) {
    Half::template decode<adding>(wire, target);
  }
}
template <class Half, bool adding, bool writing>
void round_halves(const std::byte* source, std::int64_t groups, std::byte* wire, std::byte* target) {
  alignas(64) std::byte here[source_bytes / 2];
  for (; groups > 0; --groups, source += source_bytes, target += source_bytes) {
    std::byte* const to = writing ? wire : here;
    Half::encode(source, to);
    Half::template decode<adding>(to, target);
    if constexpr (writing) wire += source_bytes / 2;
  }
}

template <class Half, bool own_first, bool mean>
void reduce_halves(const Pair& pair, std::int64_t groups, std::byte* wire, std::byte* target) {
  const std::byte* own = pair.own;
  const std::byte* other = pair.other;
  constexpr std::int64_t ahead = 1024;
  for (; groups > 0; --groups, own += source_bytes, other += source_bytes / 2) {
    __builtin_prefetch(other + ahead);
    __builtin_prefetch(wire + ahead, 1);
    Half::template reduce<own_first, mean>(own, other, wire, target);
    wire += source_bytes / 2;
    target += source_bytes;
  }
}
template <class Half>
void reduce_half(const Pair& pair, std::int64_t groups, std::byte* wire, std::byte* target) {
  const auto run = pair.mean ? (pair.own_first ? reduce_halves<Half, true, true> : reduce_halves<Half, false, true>)
                             : (pair.own_first ? reduce_halves<Half, true, false> : reduce_halves<Half, false, false>);
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
template <class Half>
constexpr CodecLoops loops_of_half{encode_halves<Half>,
                                   decode_halves<Half, false>,
                                   decode_halves<Half, true>,
                                   round_either<round_halves<Half, false, true>, round_halves<Half, false, false>>,
                                   round_either<round_halves<Half, true, true>, round_halves<Half, true, false>>,
                                   reduce_half<Half>};

template <class Wide>
consteval CodecSet set_of(const char* name) {
  return CodecSet(name, loops_of_half<Fp16<Wide>>, loops_of_half<typename Wide::Bf16>, loops_of<Wide, E4m3Steps<Wide>>,
                  loops_of<Wide, SymmetricSteps<Wide, Bytes8>>, loops_of<Wide, SymmetricSteps<Wide, Bits6>>,
                  loops_of<Wide, SymmetricSteps<Wide, Bits4>>, loops_of<Wide, SymmetricSteps<Wide, Bits3>>);
}

}  // namespace
}  // namespace onehop::detail
