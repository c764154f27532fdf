// Compiled for processors with AVX-512 (see CMakeLists.txt); elsewhere empty.
#include "codec_loops.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // the intrinsics of g++ 12 warn of themselves
#endif
#include "codec_x86.h"

namespace onehop::detail {
namespace {

// 32 numbers in two registers.
struct Wide512 {
  static __m512 load(const std::byte* from) { return _mm512_loadu_ps(from); }

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

  static __m256i join(__m512i a, __m512i b) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm512_cvtepi32_epi8(a)), _mm512_cvtepi32_epi8(b), 1);
  }

  static __m256i quantise(const std::byte* x, float inverse) {
    const __m512 factor = _mm512_set1_ps(inverse);
    return join(_mm512_cvtps_epi32(_mm512_mul_ps(load(x), factor)),
                _mm512_cvtps_epi32(_mm512_mul_ps(load(x + 64), factor)));
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
    // The sign from bits 24 and up, the code from below: only the lowest byte is used.
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

  static void to_fp16(const std::byte* x, std::byte* wire) {
    constexpr int how = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(wire), _mm512_cvtps_ph(load(x), how));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(wire + 32), _mm512_cvtps_ph(load(x + 64), how));
  }
  template <bool adding>
  static void put_fp16(const std::byte* wire, std::byte* to) {
    const auto* from = reinterpret_cast<const __m256i*>(wire);
    store<adding>(_mm512_cvtph_ps(_mm256_loadu_si256(from)), to);
    store<adding>(_mm512_cvtph_ps(_mm256_loadu_si256(from + 1)), to + 64);
  }

  // As to_bfloat16; the result is the upper half of each number.
  static __m256i bf16_of(__m512i bits) {
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    const __mmask16 is_nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    const __m512i quiet = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(quiet, 16));
  }
  static void to_bf16(const std::byte* x, std::byte* wire) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(wire), bf16_of(_mm512_loadu_si512(x)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(wire + 32), bf16_of(_mm512_loadu_si512(x + 64)));
  }
  template <bool adding>
  static void put_bf16(const std::byte* wire, std::byte* to) {
    const auto* from = reinterpret_cast<const __m256i*>(wire);
    const auto widen = [](__m256i halves) {
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    };
    store<adding>(widen(_mm256_loadu_si256(from)), to);
    store<adding>(widen(_mm256_loadu_si256(from + 1)), to + 64);
  }
};

constexpr CodecSet set = set_of<Wide512>("AVX-512");

}  // namespace

const CodecSet* avx512_codecs() { return &set; }

}  // namespace onehop::detail
#else
namespace onehop::detail {
const CodecSet* avx512_codecs() { return nullptr; }
}  // namespace onehop::detail
#endif
