// Compiled for processors with AVX2 and F16C (see CMakeLists.txt); elsewhere empty.
#include "src/codec/codec_loops.h"

#if defined(__AVX2__) && defined(__F16C__)
#include "src/codec/codec_x86.h"

namespace onehop::detail {
namespace {

// 32 numbers in four registers.
struct Wide256 {
  static __m256 load(const std::byte* from) { return _mm256_loadu_ps(reinterpret_cast<const float*>(from)); }
  static __m256i load_bits(const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
  static __m128i load_half(const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
  static __m256i everywhere(int value) { return _mm256_set1_epi32(value); }

  template <bool adding>
  static void store(__m256 value, std::byte* to) {
    if constexpr (adding) value = _mm256_add_ps(load(to), value);
    _mm256_storeu_ps(reinterpret_cast<float*>(to), value);
  }

  static std::uint32_t largest_magnitude(const std::byte* x) {
    const __m256i magnitude = everywhere(0x7fffffff);
    const auto load_magnitude = [&](std::ptrdiff_t i) { return _mm256_and_si256(load_bits(x + 32 * i), magnitude); };
    const __m256i d = _mm256_max_epi32(_mm256_max_epi32(load_magnitude(0), load_magnitude(1)),
                                       _mm256_max_epi32(load_magnitude(2), load_magnitude(3)));
    const __m128i e = _mm_max_epi32(_mm256_castsi256_si128(d), _mm256_extracti128_si256(d, 1));
    const __m128i f = _mm_max_epi32(e, _mm_shuffle_epi32(e, 0x4e));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_max_epi32(f, _mm_shuffle_epi32(f, 0xb1))));
  }

  static void four_magnitudes(const std::byte* x, std::uint32_t* to) {
    for (std::ptrdiff_t b = 0; b < 4; ++b) to[b] = largest_magnitude(x + b * source_bytes);
  }

  // Joins four times eight integers, each in the range of a signed byte, in order.
  static __m256i join(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i mixed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    return _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }

  static __m256i quantise(const std::byte* x, float inverse) {
    const __m256 factor = _mm256_set1_ps(inverse);
    const auto codes = [&](std::ptrdiff_t i) { return _mm256_cvtps_epi32(_mm256_mul_ps(load(x + 32 * i), factor)); };
    return join(codes(0), codes(1), codes(2), codes(3));
  }

  static Codes2 quantise_two(const std::byte* x, const float* inverse) {
    return {quantise(x, inverse[0]), quantise(x + source_bytes, inverse[1])};
  }

  template <bool adding>
  static Codes2 round_two(const std::byte* x, const float* inverse, const std::uint32_t* scale, std::byte* to) {
    const Codes2 codes = quantise_two(x, inverse);
    for (std::ptrdiff_t i = 0; i < 2; ++i) put<adding>(codes.of[i], as_float(scale[i]), to + i * source_bytes);
    return codes;
  }

  static void add_rounded(const std::byte* own, float inverse, float scale, __m256i others, float their_scale,
                          std::byte* to) {
    put<false>(quantise(own, inverse), scale, to);
    put<true>(others, their_scale, to);
  }

  template <bool adding>
  static void put(__m256i codes, float scale, std::byte* to) {
    const __m256 factor = _mm256_set1_ps(scale);
    const auto put_eight = [&](__m128i eight, std::ptrdiff_t i) {
      store<adding>(_mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight)), factor), to + 32 * i);
    };
    const __m128i lower = _mm256_castsi256_si128(codes);
    const __m128i upper = _mm256_extracti128_si256(codes, 1);
    put_eight(lower, 0);
    put_eight(_mm_unpackhi_epi64(lower, lower), 1);
    put_eight(upper, 2);
    put_eight(_mm_unpackhi_epi64(upper, upper), 3);
  }

  // As E4m3::code, as an integer in the range of a signed byte.
  static __m256i e4m3_code(__m256 y) {
    const __m256i bits = _mm256_castps_si256(y);
    const __m256i magnitude = _mm256_and_si256(bits, everywhere(0x7fffffff));
    const __m256 shifted = _mm256_add_ps(_mm256_castsi256_ps(magnitude), _mm256_set1_ps(0x1p14F));
    const __m256i small = _mm256_sub_epi32(_mm256_castps_si256(shifted), everywhere(0x46800000));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 20), everywhere(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(magnitude, odd), everywhere(0x7ffff - (120 << 23)));
    const __m256i is_small = _mm256_cmpgt_epi32(everywhere(0x3c800000), magnitude);
    const __m256i code = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 20), small, is_small);
    return _mm256_or_si256(code, _mm256_slli_epi32(_mm256_srai_epi32(bits, 31), 7));
  }
  static __m256i to_e4m3(const std::byte* x, float inverse) {
    const __m256 factor = _mm256_set1_ps(inverse);
    const auto codes = [&](std::ptrdiff_t i) { return e4m3_code(_mm256_mul_ps(load(x + 32 * i), factor)); };
    return join(codes(0), codes(1), codes(2), codes(3));
  }

  template <bool adding>
  static void put_e4m3(__m256i codes, float scale, std::byte* to) {
    const __m256 factor = _mm256_set1_ps(scale);
    const auto put_sixteen = [&](__m128i sixteen, std::ptrdiff_t i) {
      const __m256i shifted = _mm256_slli_epi16(_mm256_cvtepi8_epi16(sixteen), 7);
      const __m256i halves = _mm256_and_si256(shifted, _mm256_set1_epi16(static_cast<short>(0xbfff)));
      store<adding>(_mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), factor), to + 64 * i);
      store<adding>(_mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)), factor), to + 64 * i + 32);
    };
    put_sixteen(_mm256_castsi256_si128(codes), 0);
    put_sixteen(_mm256_extracti128_si256(codes, 1), 1);
  }

  static __m128i to_fp16(__m256 x) { return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static __m256 from_fp16(__m128i halves) { return _mm256_cvtph_ps(halves); }
  static void store_half(__m128i halves, std::byte* to) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves); }

  struct Bf16 {
    // As to_bfloat16, in the lower half of each number.
    static __m256i bf16_of(__m256i bits) {
      const __m256i magnitude = _mm256_and_si256(bits, everywhere(0x7fffffff));
      const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, everywhere(0x7f800000));
      const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), everywhere(1));
      const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, odd), everywhere(0x7fff));
      const __m256i quiet = _mm256_or_si256(bits, everywhere(0x400000));
      return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
    }
    static void encode(const std::byte* x, std::byte* wire) {
      for (std::ptrdiff_t i = 0; i < 2; ++i) {
        const __m256i a = bf16_of(load_bits(x + 64 * i));
        const __m256i b = bf16_of(load_bits(x + 64 * i + 32));
        const __m256i joined = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(wire + 32 * i), joined);
      }
    }
    template <bool adding>
    static void decode(const std::byte* wire, std::byte* to) {
      for (std::ptrdiff_t i = 0; i < 4; ++i) {
        const __m256i widened = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_half(wire + 16 * i)), 16);
        store<adding>(_mm256_castsi256_ps(widened), to + 32 * i);
      }
    }
    template <bool own_first, bool mean>
    static void reduce(const std::byte* own, const std::byte* other, std::byte* wire, std::byte* to) {
      const auto widened = [](__m256i lower) { return _mm256_castsi256_ps(_mm256_slli_epi32(lower, 16)); };
      for (std::ptrdiff_t at = 0; at < source_bytes; at += 32) {
        const __m256 theirs = widened(_mm256_cvtepu16_epi32(load_half(other + at / 2)));
        const __m256 sum = added<own_first, mean>(widened(bf16_of(load_bits(own + at))), theirs);
        const __m256i result = bf16_of(_mm256_castps_si256(sum));
        const __m256i joined = _mm256_permute4x64_epi64(_mm256_packus_epi32(result, result), 0xd8);
        store_half(_mm256_castsi256_si128(joined), wire + at / 2);
        store<false>(widened(result), to + at);
      }
    }
  };
};

constexpr CodecSet set = set_of<Wide256>("avx2");

}  // namespace

const CodecSet* avx2_codecs() { return &set; }

}  // namespace onehop::detail
#else
namespace onehop::detail {
const CodecSet* avx2_codecs() { return nullptr; }
}  // namespace onehop::detail
#endif
