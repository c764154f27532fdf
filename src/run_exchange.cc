#include "run_exchange.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

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

void swap_runs(const Runs& runs, std::byte* a, std::byte* b, std::uint64_t first, std::uint64_t last) noexcept {
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

Runs::Runs(int bits, std::uint64_t fixed, std::int64_t element_bytes) : fixed_(fixed), element_bytes_(element_bytes) {
  const int free_below = fixed == 0 ? bits : std::countr_zero(fixed);
  while (run_bits_ < free_below && element_bytes << (run_bits_ + 1) <= longest_run) ++run_bits_;
  skipped_ = fixed | ((std::uint64_t{1} << run_bits_) - 1);
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
