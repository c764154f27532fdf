// Loops of exchanges without a buffer: they move runs of elements in place between places of equal layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/base/cpu.h"

namespace onehop::detail {

// The level of the loops here and in line_exchange.h at the present cpu::level(): avx512 or portable.
[[nodiscard]] cpu::Level exchange_level() noexcept;

// The element numbers of `bits` bits that have no bit of `fixed` set, in runs of 2^run_bits consecutive numbers.
class Runs {
 public:
  Runs() = default;
  // Chooses the longest possible runs, but at most 256 KiB, so that the work can be shared.
  Runs(int bits, std::uint64_t fixed, std::int64_t element_bytes);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t run_bytes() const noexcept { return element_bytes_ << run_bits_; }
  [[nodiscard]] std::int64_t element_bytes() const noexcept { return element_bytes_; }
  // The first element of run number `run`, and of the run after that of element `at`.
  [[nodiscard]] std::uint64_t first_of(std::uint64_t run) const noexcept;
  [[nodiscard]] std::uint64_t after(std::uint64_t at) const noexcept { return ((at | skipped_) + 1) & ~skipped_; }
  // The number of runs in one cache line if they are shorter than a line and consist of whole words, else 0; and the
  // first element of the next line that has runs.
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

// Moves the runs [first, last) at places[i] to places[i + 1], and those at the last place to the first. A place is the
// address of element 0, in different memory or with different fixed bits set.
void rotate(const Runs& runs, std::span<std::byte* const> places, std::uint64_t first, std::uint64_t last) noexcept;

// Exchanges two bits of the number of each of the 2^bits elements at `array`.
void swap_bits(std::byte* array, int bits, int a, int b, std::int64_t element_bytes) noexcept;

}  // namespace onehop::detail
