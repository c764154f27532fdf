// Compiled for processors with AVX-512 (see CMakeLists.txt); elsewhere empty.
#include "src/codec/lossless_steps.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // the intrinsics of g++ 12 warn of themselves
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "src/codec/lossless_x86.h"

namespace onehop::detail {
namespace {

struct Isa512 {
  static constexpr std::size_t lanes = 64;
  using Bytes = __m512i;

  static Bytes load(const void* from) { return _mm512_loadu_si512(from); }
  static void store(void* to, Bytes x) { _mm512_storeu_si512(to, x); }
  static Bytes everywhere(std::uint8_t x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Bytes max(Bytes a, Bytes b) { return _mm512_max_epu8(a, b); }
  static Bytes min(Bytes a, Bytes b) { return _mm512_min_epu8(a, b); }
  static Bytes subtract(Bytes a, Bytes b) { return _mm512_sub_epi8(a, b); }
  static std::uint64_t at_least(Bytes x, std::uint8_t limit) { return _mm512_cmpge_epu8_mask(x, everywhere(limit)); }
  static std::uint64_t bits(Bytes x, unsigned place) {
    return _mm512_test_epi8_mask(x, everywhere(static_cast<std::uint8_t>(1U << place)));
  }
  static Bytes with_bits(Bytes x, const std::byte* from, unsigned place) {
    std::uint64_t mask;
    std::memcpy(&mask, from, sizeof mask);
    return _mm512_or_si512(x, _mm512_maskz_set1_epi8(mask, static_cast<char>(1U << place)));
  }
  static std::uint8_t largest(Bytes x) {
    const __m256i a = _mm256_max_epu8(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    __m128i b = _mm_max_epu8(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    // The smallest 16-bit number of the complements' pairs has the smallest complement.
    b = _mm_xor_si128(b, _mm_set1_epi8(-1));
    b = _mm_min_epu8(b, _mm_srli_epi16(b, 8));
    return static_cast<std::uint8_t>(~_mm_cvtsi128_si32(_mm_minpos_epu16(b)));
  }

  static std::uint32_t split32(const std::byte* from, std::uint8_t* exponents, std::uint8_t* upper,
                               std::uint16_t* lower) {
    Bytes any = _mm512_setzero_si512();
    for (std::size_t i = 0; i < lanes; i += 16) {
      const Bytes x = load(from + 4 * i);
      any = _mm512_or_si512(any, x);
      const Bytes high = _mm512_srli_epi32(x, 16);
      const Bytes mantissa = _mm512_and_si512(high, _mm512_set1_epi32(0x7f));
      const Bytes sign = _mm512_and_si512(_mm512_srli_epi32(x, 24), _mm512_set1_epi32(0x80));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(exponents + i), _mm512_cvtepi32_epi8(_mm512_srli_epi32(x, 23)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(upper + i), _mm512_cvtepi32_epi8(_mm512_or_si512(mantissa, sign)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(lower + i), _mm512_cvtepi32_epi16(x));
    }
    return static_cast<std::uint32_t>(_mm512_reduce_or_epi32(any));
  }
  static std::uint32_t split16(const std::byte* from, std::uint8_t* exponents, std::uint8_t* upper) {
    Bytes any = _mm512_setzero_si512();
    for (std::size_t i = 0; i < lanes; i += 32) {
      const Bytes x = load(from + 2 * i);
      any = _mm512_or_si512(any, x);
      const Bytes mantissa = _mm512_and_si512(x, _mm512_set1_epi16(0x7f));
      const Bytes sign = _mm512_and_si512(_mm512_srli_epi16(x, 8), _mm512_set1_epi16(0x80));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(exponents + i), _mm512_cvtepi16_epi8(_mm512_srli_epi16(x, 7)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(upper + i), _mm512_cvtepi16_epi8(_mm512_or_si512(mantissa, sign)));
    }
    return static_cast<std::uint32_t>(_mm512_reduce_or_epi32(any));
  }

  static void join32(const std::uint8_t* exponents, const std::uint8_t* upper, const std::uint16_t* lower,
                     std::byte* to) {
    for (std::size_t i = 0; i < lanes; i += 16) {
      const Bytes e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(exponents + i)));
      const Bytes u = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(upper + i)));
      const Bytes l = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(lower + i)));
      const Bytes sign = _mm512_slli_epi32(_mm512_srli_epi32(u, 7), 31);
      const Bytes mantissa = _mm512_slli_epi32(_mm512_and_si512(u, _mm512_set1_epi32(0x7f)), 16);
      const Bytes rest = _mm512_or_si512(mantissa, l);
      store(to + 4 * i, _mm512_or_si512(_mm512_or_si512(sign, _mm512_slli_epi32(e, 23)), rest));
    }
  }
  static void join16(const std::uint8_t* exponents, const std::uint8_t* upper, std::byte* to) {
    for (std::size_t i = 0; i < lanes; i += 32) {
      const Bytes e = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(exponents + i)));
      const Bytes u = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(upper + i)));
      const Bytes sign = _mm512_slli_epi16(_mm512_srli_epi16(u, 7), 15);
      const Bytes mantissa = _mm512_and_si512(u, _mm512_set1_epi16(0x7f));
      store(to + 2 * i, _mm512_or_si512(_mm512_or_si512(sign, _mm512_slli_epi16(e, 7)), mantissa));
    }
  }
};

}  // namespace

const LosslessSteps* lossless_avx512() noexcept { return &LosslessLoops<Isa512>::steps; }

}  // namespace onehop::detail

#else

const onehop::detail::LosslessSteps* onehop::detail::lossless_avx512() noexcept { return nullptr; }

#endif
