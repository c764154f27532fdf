// The loops of exchanges without a buffer: they move runs of elements in place between places of equal layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/base/cpu.h"

namespace onehop::detail {

// The level of the loops that this header and line_exchange.h use at cpu::level(): avx512 or portable, there are no others.
[[nodiscard]] cpu::Level exchange_level() noexcept;

// Element numbers of `bits` bits, without those that have a bit of `fixed` set, in runs of 2^run_bits consecutive ones.
class Runs {
 public:
  Runs() = default;
  // The longest runs that there are, but of no more than 256 KiB, so that the work can be shared.
  Runs(int bits, std::uint64_t fixed, std::int64_t element_bytes);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t run_bytes() const noexcept { return element_bytes_ << run_bits_; }
  [[nodiscard]] std::int64_t element_bytes() const noexcept { return element_bytes_; }
  // The first element of run number `run`, and of the run after that of element `at`.
  [[nodiscard]] std::uint64_t first_of(std::uint64_t run) const noexcept;
  [[nodiscard]] std::uint64_t after(std::uint64_t at) const noexcept { return ((at | skipped_) + 1) & ~skipped_; }
  // How many runs lie in one cache line, if they are shorter than one and made of whole words; else 0. And the first
  // element of the next line that has runs.
  [[nodiscard]] std::uint64_t in_line() const noexcept { return in_line_; }
  [[nodiscard]] std::uint64_t after_line(std::uint64_t at) const noexcept {
    return ((at | line_skipped_) + 1) & ~line_skipped_;
  }

 private:
  std::uint64_t skipped_ = 0;       // the fixed bits, and those inside a run
  std::uint64_t line_skipped_ = 0;  // and those inside a line
  std::uint64_t in_line_ = 0;
  std::uint64_t count_ = 0;
  std::int64_t element_bytes_ = 1;
  int run_bits_ = 0;
};

// What lies at places[i] goes to places[i + 1], and from the last to the first: runs [first, last). The places are
// those of element 0, in different memory or with different fixed bits set.
void rotate(const Runs& runs, std::span<std::byte* const> places, std::uint64_t first, std::uint64_t last) noexcept;

// Exchanges two bits of the number of each of the 2^bits elements at `array`.
void swap_bits(std::byte* array, int bits, int a, int b, std::int64_t element_bytes) noexcept;

}  // namespace onehop::detail
