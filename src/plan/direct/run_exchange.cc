#include "src/plan/direct/run_exchange.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace onehop::detail {
namespace {

constexpr std::int64_t longest_run = 256 << 10;

template <std::size_t n>
struct Block {
  std::byte bytes[n];
};

template <std::size_t n>
inline void swap_block(std::byte* a, std::byte* b) noexcept {
  Block<n> x;
  Block<n> y;
  std::memcpy(&x, a, n);
  std::memcpy(&y, b, n);
  std::memcpy(a, &y, n);
  std::memcpy(b, &x, n);
}

inline void swap_any(std::byte* a, std::byte* b, std::int64_t n) noexcept {
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) swap_block<64>(a + i, b + i);
  for (; i + 8 <= n; i += 8) swap_block<8>(a + i, b + i);
  for (; i < n; ++i) swap_block<1>(a + i, b + i);
}

// Runs whose length the compiler knows.
template <std::size_t run>
void swap_short(const Runs& runs, std::byte* a, std::byte* b, std::uint64_t first, std::uint64_t last) noexcept {
  std::uint64_t at = runs.first_of(first);
  const auto element_bytes = static_cast<std::uint64_t>(runs.element_bytes());
  for (std::uint64_t i = first; i < last; ++i, at = runs.after(at)) {
    const std::uint64_t offset = at * element_bytes;
    swap_block<run>(a + offset, b + offset);
  }
}

void swap_long(const Runs& runs, std::byte* a, std::byte* b, std::uint64_t first, std::uint64_t last) noexcept {
  std::uint64_t at = runs.first_of(first);
  const auto element_bytes = static_cast<std::uint64_t>(runs.element_bytes());
  const std::int64_t run = runs.run_bytes();
  for (std::uint64_t i = first; i < last; ++i, at = runs.after(at)) {
    const std::uint64_t offset = at * element_bytes;
    swap_any(a + offset, b + offset, run);
  }
}

#if defined(__x86_64__)

// Swaps runs shorter than a cache line and reads and writes both lines once. Run by run, a line would be accessed many
// times while the other one, at the same place in a page, may evict it from the first-level cache each time. Only words
// that change are accessed, because another rank may write the others at the same time.
__attribute__((target("avx512f"))) void swap_lines_avx512(const Runs& runs, std::byte* a, std::byte* b,
                                                          std::uint64_t first, std::uint64_t last) noexcept {
  const std::uint64_t in_line = runs.in_line();
  const auto run_words = static_cast<std::uint64_t>(runs.run_bytes()) / 8;
  const std::uint64_t a_word = reinterpret_cast<std::uintptr_t>(a) / 8 % 8;
  const std::uint64_t b_word = reinterpret_cast<std::uintptr_t>(b) / 8 % 8;
  // The source of each word of a line in the other line, and the words that change.
  alignas(64) std::array<std::uint64_t, 8> from_b{};
  alignas(64) std::array<std::uint64_t, 8> from_a{};
  unsigned a_changes = 0;
  unsigned b_changes = 0;
  for (std::uint64_t run = 0, at = 0; run < in_line; ++run, at = runs.after(at)) {
    for (std::uint64_t word = 0; word < run_words; ++word) {
      const std::uint64_t offset = at * static_cast<std::uint64_t>(runs.element_bytes()) / 8 + word;
      from_b[a_word + offset] = b_word + offset;
      from_a[b_word + offset] = a_word + offset;
      a_changes |= 1U << (a_word + offset);
      b_changes |= 1U << (b_word + offset);
    }
  }
  const __m512i take_b = _mm512_load_si512(from_b.data());
  const __m512i take_a = _mm512_load_si512(from_a.data());
  const auto a_words = static_cast<__mmask8>(a_changes);
  const auto b_words = static_cast<__mmask8>(b_changes);
  std::byte* const a_lines = a - a_word * 8;
  std::byte* const b_lines = b - b_word * 8;
  std::uint64_t at = runs.first_of(first);
  for (std::uint64_t run = first; run < last; run += in_line) {
    const std::uint64_t offset = at * static_cast<std::uint64_t>(runs.element_bytes());
    const __m512i x = _mm512_maskz_load_epi64(a_words, a_lines + offset);
    const __m512i y = _mm512_maskz_load_epi64(b_words, b_lines + offset);
    _mm512_mask_store_epi64(a_lines + offset, a_words, _mm512_maskz_permutexvar_epi64(a_words, take_b, y));
    _mm512_mask_store_epi64(b_lines + offset, b_words, _mm512_maskz_permutexvar_epi64(b_words, take_a, x));
    at = runs.after_line(at);
  }
}

// Returns false if it does not apply (runs do not divide lines, or the processor lacks AVX-512).
bool swap_lines(const Runs& runs, std::byte* a, std::byte* b, std::uint64_t first, std::uint64_t last) noexcept {
  const std::uint64_t in_line = runs.in_line();
  if (exchange_level() != cpu::Level::avx512 || in_line == 0 || first % in_line != 0 || last % in_line != 0)
    return false;
  // The runs of one line must not begin in one line and end in the next.
  const std::uint64_t lowest = runs.first_of(in_line - 1) * static_cast<std::uint64_t>(runs.element_bytes());
  for (const std::byte* place : {a, b}) {
    const auto where = reinterpret_cast<std::uintptr_t>(place) % 64;
    if (where % 8 != 0 || where + lowest + static_cast<std::uint64_t>(runs.run_bytes()) > 64) return false;
  }
  swap_lines_avx512(runs, a, b, first, last);
  return true;
}

#else

bool swap_lines(const Runs&, std::byte*, std::byte*, std::uint64_t, std::uint64_t) noexcept { return false; }

#endif

void swap_runs(const Runs& runs, std::byte* a, std::byte* b, std::uint64_t first, std::uint64_t last) noexcept {
  if (swap_lines(runs, a, b, first, last)) return;
  switch (runs.run_bytes()) {
    case 8:
      return swap_short<8>(runs, a, b, first, last);
    case 16:
      return swap_short<16>(runs, a, b, first, last);
    case 32:
      return swap_short<32>(runs, a, b, first, last);
    default:
      return swap_long(runs, a, b, first, last);
  }
}

}  // namespace

cpu::Level exchange_level() noexcept {
  const cpu::Level level = cpu::level_or_best();
  return level == cpu::Level::avx512 ? level : cpu::Level::portable;
}

Runs::Runs(int bits, std::uint64_t fixed, std::int64_t element_bytes) : element_bytes_(element_bytes) {
  const int free_below = fixed == 0 ? bits : std::countr_zero(fixed);
  while (run_bits_ < free_below && element_bytes << (run_bits_ + 1) <= longest_run) ++run_bits_;
  skipped_ = fixed | ((std::uint64_t{1} << run_bits_) - 1);
  const bool fits =
      element_bytes >= 8 && element_bytes <= 64 && std::has_single_bit(static_cast<std::uint64_t>(element_bytes));
  const int line_bits = fits ? std::countr_zero(std::uint64_t{64} / static_cast<std::uint64_t>(element_bytes)) : 0;
  if (fits && run_bits_ < line_bits && line_bits <= bits) {
    const std::uint64_t line = (std::uint64_t{1} << line_bits) - 1;
    in_line_ = std::uint64_t{1} << (line_bits - std::popcount(skipped_ & line));
    line_skipped_ = skipped_ | line;
  }
  count_ = std::uint64_t{1} << (bits - std::popcount(skipped_));
}

std::uint64_t Runs::first_of(std::uint64_t run) const noexcept {
  std::uint64_t at = 0;
  for (std::uint64_t bit = 1; run != 0; bit <<= 1) {
    if ((skipped_ & bit) != 0) continue;
    if ((run & 1) != 0) at |= bit;
    run >>= 1;
  }
  return at;
}

void rotate(const Runs& runs, std::span<std::byte* const> places, std::uint64_t first, std::uint64_t last) noexcept {
  if (first >= last || places.size() < 2) return;
  if (places.size() == 2) return swap_runs(runs, places[0], places[1], first, last);
  constexpr std::int64_t block = 4096;
  std::array<std::byte, block> kept;
  std::uint64_t at = runs.first_of(first);
  for (std::uint64_t i = first; i < last; ++i, at = runs.after(at)) {
    const std::uint64_t offset = at * static_cast<std::uint64_t>(runs.element_bytes());
    for (std::int64_t done = 0; done < runs.run_bytes(); done += block) {
      const auto begin = offset + static_cast<std::uint64_t>(done);
      const auto n = static_cast<std::size_t>(std::min(block, runs.run_bytes() - done));
      std::memcpy(kept.data(), places.back() + begin, n);
      for (std::size_t p = places.size() - 1; p > 0; --p) std::memcpy(places[p] + begin, places[p - 1] + begin, n);
      std::memcpy(places[0] + begin, kept.data(), n);
    }
  }
}

void swap_bits(std::byte* array, int bits, int a, int b, std::int64_t element_bytes) noexcept {
  const std::uint64_t first = std::uint64_t{1} << a;
  const std::uint64_t second = std::uint64_t{1} << b;
  const Runs runs(bits, first | second, element_bytes);
  swap_runs(runs, array + first * static_cast<std::uint64_t>(element_bytes),
            array + second * static_cast<std::uint64_t>(element_bytes), 0, runs.count());
}

}  // namespace onehop::detail
