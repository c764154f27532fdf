// Compiled for processors with AVX-512 (see CMakeLists.txt); elsewhere empty.
#include "src/codec/codec_loops.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // the intrinsics of g++ 12 warn of themselves
#endif
#include "src/codec/codec_x86.h"

namespace onehop::detail {
namespace {

// 32 numbers in two registers.
struct Wide512 {
  static __m512 load(const std::byte* from) { return _mm512_loadu_ps(from); }
  static __m256i load_half(const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }

  template <bool adding>
  static void store(__m512 value, std::byte* to) {
    if constexpr (adding) value = _mm512_add_ps(load(to), value);
    _mm512_storeu_ps(to, value);
  }

  static std::uint32_t largest_magnitude(const std::byte* x) {
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    const __m512i a = _mm512_and_si512(_mm512_loadu_si512(x), magnitude);
    const __m512i b = _mm512_and_si512(_mm512_loadu_si512(x + 64), magnitude);
    const __m512i c = _mm512_max_epi32(a, b);
    const __m256i d = _mm256_max_epi32(_mm512_castsi512_si256(c), _mm512_extracti64x4_epi64(c, 1));
    const __m128i e = _mm_max_epi32(_mm256_castsi256_si128(d), _mm256_extracti128_si256(d, 1));
    const __m128i f = _mm_max_epi32(e, _mm_shuffle_epi32(e, 0x4e));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_max_epi32(f, _mm_shuffle_epi32(f, 0xb1))));
  }

  // The largest magnitudes of four consecutive blocks.
  static void four_magnitudes(const std::byte* x, std::uint32_t* to) {
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    const auto of = [&](std::ptrdiff_t block) {
      const std::byte* const from = x + block * source_bytes;
      return _mm512_max_epi32(_mm512_and_si512(_mm512_loadu_si512(from), magnitude),
                              _mm512_and_si512(_mm512_loadu_si512(from + 64), magnitude));
    };
    // Two blocks in each half of a lane, then four blocks in each lane.
    const auto two = [](__m512i a, __m512i b) {
      return _mm512_max_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    };
    const __m512i ab = two(of(0), of(1));
    const __m512i cd = two(of(2), of(3));
    const __m512i four = _mm512_max_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    const __m256i d = _mm256_max_epi32(_mm512_castsi512_si256(four), _mm512_extracti64x4_epi64(four, 1));
    const __m128i e = _mm_max_epi32(_mm256_castsi256_si128(d), _mm256_extracti128_si256(d, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), e);
  }

  static __m256i join(__m512i a, __m512i b) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm512_cvtepi32_epi8(a)), _mm512_cvtepi32_epi8(b), 1);
  }

  static __m256i quantise(const std::byte* x, float inverse) {
    const __m512 factor = _mm512_set1_ps(inverse);
    return join(_mm512_cvtps_epi32(_mm512_mul_ps(load(x), factor)),
                _mm512_cvtps_epi32(_mm512_mul_ps(load(x + 64), factor)));
  }

  // Four times 16 codes, in order.
  static Codes2 join_two(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i mixed = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i both = _mm512_permutexvar_epi32(order, mixed);
    return {{_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64(both, 1)}};
  }

  static Codes2 quantise_two(const std::byte* x, const float* inverse) {
    const auto codes = [&](std::ptrdiff_t block, std::ptrdiff_t at) {
      const __m512 factor = _mm512_set1_ps(inverse[block]);
      return _mm512_cvtps_epi32(_mm512_mul_ps(load(x + block * source_bytes + at), factor));
    };
    return join_two(codes(0, 0), codes(0, 64), codes(1, 0), codes(1, 64));
  }

  template <bool adding>
  static Codes2 round_two(const std::byte* x, const float* inverse, const std::uint32_t* scale, std::byte* to) {
    const auto round = [&](std::ptrdiff_t block, std::ptrdiff_t at) {
      const std::ptrdiff_t offset = block * source_bytes + at;
      const __m512i codes = _mm512_cvtps_epi32(_mm512_mul_ps(load(x + offset), _mm512_set1_ps(inverse[block])));
      store<adding>(_mm512_mul_ps(_mm512_cvtepi32_ps(codes), _mm512_set1_ps(as_float(scale[block]))), to + offset);
      return codes;
    };
    const __m512i a = round(0, 0);
    const __m512i b = round(0, 64);
    const __m512i c = round(1, 0);
    const __m512i d = round(1, 64);
    return join_two(a, b, c, d);
  }

  // Products of codes and scales are exact, so a fused multiply-add rounds once, as a separate addition does.
  static void add_rounded(const std::byte* own, float inverse, float scale, __m256i others, float their_scale,
                          std::byte* to) {
    const __m512 to_codes = _mm512_set1_ps(inverse);
    const __m512 factor = _mm512_set1_ps(scale);
    const __m512 their_factor = _mm512_set1_ps(their_scale);
    const auto add = [&](std::ptrdiff_t at, __m128i theirs) {
      const __m512 code = _mm512_roundscale_ps(_mm512_mul_ps(load(own + at), to_codes), _MM_FROUND_TO_NEAREST_INT);
      const __m512 their_code = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(theirs));
      store<false>(_mm512_fmadd_ps(their_code, their_factor, _mm512_mul_ps(code, factor)), to + at);
    };
    add(0, _mm256_castsi256_si128(others));
    add(64, _mm256_extracti128_si256(others, 1));
  }

  template <bool adding>
  static void put(__m256i codes, float scale, std::byte* to) {
    const __m512 factor = _mm512_set1_ps(scale);
    const __m512i a = _mm512_cvtepi8_epi32(_mm256_castsi256_si128(codes));
    const __m512i b = _mm512_cvtepi8_epi32(_mm256_extracti128_si256(codes, 1));
    store<adding>(_mm512_mul_ps(_mm512_cvtepi32_ps(a), factor), to);
    store<adding>(_mm512_mul_ps(_mm512_cvtepi32_ps(b), factor), to + 64);
  }

  // As E4m3::code.
  static __m512i e4m3_code(__m512 y) {
    const __m512i bits = _mm512_castps_si512(y);
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    const __m512i small = _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(magnitude), _mm512_set1_ps(0x1p14F)));
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(magnitude, 20), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(_mm512_add_epi32(magnitude, odd), _mm512_set1_epi32(0x7ffff - (120 << 23)));
    const __mmask16 is_small = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(0x3c800000));
    const __m512i code = _mm512_mask_mov_epi32(_mm512_srli_epi32(rounded, 20), is_small, small);
    // Bit 7 is the sign, moved down from bit 31; the lower bits are the code. Only the lowest byte is used.
    return _mm512_ternarylogic_epi32(_mm512_set1_epi32(0x80), _mm512_srli_epi32(bits, 24), code, 0xca);
  }
  static __m256i to_e4m3(const std::byte* x, float inverse) {
    const __m512 factor = _mm512_set1_ps(inverse);
    return join(e4m3_code(_mm512_mul_ps(load(x), factor)), e4m3_code(_mm512_mul_ps(load(x + 64), factor)));
  }

  template <bool adding>
  static void put_e4m3(__m256i codes, float scale, std::byte* to) {
    const __m512 factor = _mm512_set1_ps(scale);
    const __m512i shifted = _mm512_slli_epi16(_mm512_cvtepi8_epi16(codes), 7);
    const __m512i halves = _mm512_and_si512(shifted, _mm512_set1_epi16(static_cast<short>(0xbfff)));
    store<adding>(_mm512_mul_ps(_mm512_cvtph_ps(_mm512_castsi512_si256(halves)), factor), to);
    store<adding>(_mm512_mul_ps(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)), factor), to + 64);
  }

  static __m256i to_fp16(__m512 x) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static __m512 from_fp16(__m256i halves) { return _mm512_cvtph_ps(halves); }
  static void store_half(__m256i halves, std::byte* to) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves); }

  struct Bf16 {
    // As to_bfloat16; the result is the upper half of each number.
    static __m512i bf16_bits(__m512i bits) {
      const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
      const __mmask16 is_nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
      const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
      const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
      return _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
    }
    static __m256i upper_halves(__m512i bits) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)); }
    static __m256i bf16_of(__m512i bits) { return upper_halves(bf16_bits(bits)); }
    static void encode(const std::byte* x, std::byte* wire) {
      store_half(bf16_of(_mm512_loadu_si512(x)), wire);
      store_half(bf16_of(_mm512_loadu_si512(x + 64)), wire + 32);
    }
    template <bool adding>
    static void decode(const std::byte* wire, std::byte* to) {
      const auto widen = [](__m256i halves) {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
      };
      store<adding>(widen(load_half(wire)), to);
      store<adding>(widen(load_half(wire + 32)), to + 64);
    }
    template <bool own_first, bool mean>
    static void reduce(const std::byte* own, const std::byte* other, std::byte* wire, std::byte* to) {
      const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
      const auto rounded = [&](__m512i bits) { return _mm512_and_si512(bf16_bits(bits), upper); };
      for (std::ptrdiff_t at = 0; at < source_bytes; at += 64) {
        const __m512i mine = rounded(_mm512_loadu_si512(own + at));
        const __m256i halves = load_half(other + at / 2);
        const __m512i theirs = _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16);
        const __m512 sum = added<own_first, mean>(_mm512_castsi512_ps(mine), _mm512_castsi512_ps(theirs));
        const __m512i result = rounded(_mm512_castps_si512(sum));
        store_half(upper_halves(result), wire + at / 2);
        _mm512_storeu_si512(to + at, result);
      }
    }
  };
};

constexpr CodecSet set = set_of<Wide512>("avx512");

}  // namespace

const CodecSet* avx512_codecs() { return &set; }

}  // namespace onehop::detail
#else
namespace onehop::detail {
const CodecSet* avx512_codecs() { return nullptr; }
}  // namespace onehop::detail
#endif
