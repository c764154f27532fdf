// Compiled for processors with AVX2 (see CMakeLists.txt); elsewhere empty.
#include "src/codec/lossless_steps.h"

#if defined(__AVX2__)
#include "src/codec/lossless_x86.h"

namespace onehop::detail {
namespace {

struct Isa256 {
  static constexpr std::size_t lanes = 32;
  using Bytes = __m256i;

  static Bytes load(const void* from) { return _mm256_loadu_si256(static_cast<const Bytes*>(from)); }
  static void store(void* to, Bytes x) { _mm256_storeu_si256(static_cast<Bytes*>(to), x); }
  static Bytes everywhere(std::uint8_t x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static Bytes max(Bytes a, Bytes b) { return _mm256_max_epu8(a, b); }
  static Bytes min(Bytes a, Bytes b) { return _mm256_min_epu8(a, b); }
  static Bytes subtract(Bytes a, Bytes b) { return _mm256_sub_epi8(a, b); }
  static std::uint32_t signs(Bytes x) { return static_cast<std::uint32_t>(_mm256_movemask_epi8(x)); }
  static std::uint32_t at_least(Bytes x, std::uint8_t limit) {
    return signs(_mm256_cmpeq_epi8(max(x, everywhere(limit)), x));
  }
  static std::uint32_t bits(Bytes x, unsigned place) {
    // Moves the bit to the top of its byte; bits that cross into the upper byte stay below its top.
    return signs(_mm256_sll_epi16(x, _mm_cvtsi32_si128(static_cast<int>(7 - place))));
  }
  static Bytes with_bits(Bytes x, const std::byte* from, unsigned place) {
    std::int32_t mask;
    std::memcpy(&mask, from, sizeof mask);
    const Bytes spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                          2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const Bytes each = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
    const Bytes chosen = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(mask), spread), each);
    const Bytes bit = everywhere(static_cast<std::uint8_t>(1U << place));
    return _mm256_or_si256(x, _mm256_and_si256(_mm256_cmpeq_epi8(chosen, each), bit));
  }
  static std::uint8_t largest(Bytes x) {
    __m128i b = _mm_max_epu8(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    // The smallest 16-bit number of the complements' pairs has the smallest complement.
    b = _mm_xor_si128(b, _mm_set1_epi8(-1));
    b = _mm_min_epu8(b, _mm_srli_epi16(b, 8));
    return static_cast<std::uint8_t>(~_mm_cvtsi128_si32(_mm_minpos_epu16(b)));
  }
  static std::uint32_t all_bits(Bytes x) {
    const __m128i a = _mm_or_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    const __m128i b = _mm_or_si128(a, _mm_shuffle_epi32(a, 0x4e));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_or_si128(b, _mm_shuffle_epi32(b, 0xb1))));
  }

  // 16-bit numbers of two vectors of 32-bit ones below 2^16, and bytes of two of 16-bit ones below 2^8.
  static Bytes to_16(Bytes a, Bytes b) { return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8); }
  static Bytes to_8(Bytes a, Bytes b) { return _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8); }

  static std::uint32_t split32(const std::byte* from, std::uint8_t* exponents, std::uint8_t* upper,
                               std::uint16_t* lower) {
    Bytes any = _mm256_setzero_si256();
    Bytes high[2];
    const Bytes below = _mm256_set1_epi32(0xffff);
    for (std::size_t i = 0; i < 2; ++i) {
      const Bytes a = load(from + 64 * i);
      const Bytes b = load(from + 64 * i + 32);
      any = _mm256_or_si256(any, _mm256_or_si256(a, b));
      high[i] = to_16(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16));
      store(lower + 16 * i, to_16(_mm256_and_si256(a, below), _mm256_and_si256(b, below)));
    }
    store_halves(high[0], high[1], exponents, upper);
    return all_bits(any);
  }
  static std::uint32_t split16(const std::byte* from, std::uint8_t* exponents, std::uint8_t* upper) {
    const Bytes a = load(from);
    const Bytes b = load(from + 32);
    store_halves(a, b, exponents, upper);
    return all_bits(_mm256_or_si256(a, b));
  }
  static void store_halves(Bytes a, Bytes b, std::uint8_t* exponents, std::uint8_t* upper) {
    const auto exponent = [](Bytes x) { return _mm256_and_si256(_mm256_srli_epi16(x, 7), _mm256_set1_epi16(0xff)); };
    const auto others = [](Bytes x) {
      return _mm256_or_si256(_mm256_and_si256(x, _mm256_set1_epi16(0x7f)),
                             _mm256_and_si256(_mm256_srli_epi16(x, 8), _mm256_set1_epi16(0x80)));
    };
    store(exponents, to_8(exponent(a), exponent(b)));
    store(upper, to_8(others(a), others(b)));
  }

  // 16 upper halves.
  static Bytes halves(const std::uint8_t* exponents, const std::uint8_t* upper) {
    const Bytes e = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(exponents)));
    const Bytes u = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(upper)));
    const Bytes sign = _mm256_slli_epi16(_mm256_srli_epi16(u, 7), 15);
    const Bytes mantissa = _mm256_and_si256(u, _mm256_set1_epi16(0x7f));
    return _mm256_or_si256(_mm256_or_si256(sign, _mm256_slli_epi16(e, 7)), mantissa);
  }
  static void join32(const std::uint8_t* exponents, const std::uint8_t* upper, const std::uint16_t* lower,
                     std::byte* to) {
    for (std::size_t i = 0; i < lanes; i += 16) {
      const Bytes high = _mm256_permute4x64_epi64(halves(exponents + i, upper + i), 0xd8);
      const Bytes low = _mm256_permute4x64_epi64(load(lower + i), 0xd8);
      store(to + 4 * i, _mm256_unpacklo_epi16(low, high));
      store(to + 4 * i + 32, _mm256_unpackhi_epi16(low, high));
    }
  }
  static void join16(const std::uint8_t* exponents, const std::uint8_t* upper, std::byte* to) {
    for (std::size_t i = 0; i < lanes; i += 16) store(to + 2 * i, halves(exponents + i, upper + i));
  }
};

}  // namespace

const LosslessSteps* lossless_avx2() noexcept { return &LosslessLoops<Isa256>::steps; }

}  // namespace onehop::detail

#else

const onehop::detail::LosslessSteps* onehop::detail::lossless_avx2() noexcept { return nullptr; }

#endif
