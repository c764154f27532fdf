// Words that change places among a few cache lines: each line is read once and written once, however many cycles go through it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "run_exchange.h"

namespace onehop::detail {

class LineExchange {
 public:
  LineExchange() = default;
  // The cycles as `rotate` has them, done together; their places must not overlap. Empty where runs are no parts of lines, or places
  // lie so that the runs of one line begin in one line and end in the next, or too many lines have to be held at once.
  LineExchange(const Runs& runs, const std::vector<std::vector<std::byte*>>& cycles);

  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
  // The same as `rotate` for one cycle after the other; `first` and `last` must be multiples of runs.in_line(). Words that keep their
  // places are neither read nor written.
  void run(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept;
  // The way of processors without 512-bit vectors, word by word.
  void run_portable(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept;

 private:
  static constexpr std::size_t most_lines = 64;  // 4 KiB of the stack

  struct Line {
    std::byte* first = nullptr;  // for element 0
    std::uint8_t changes = 0;    // a bit for each word that does
    std::uint32_t parts = 0;     // one more than its last in parts_
  };
  // What a line gets from one line.
  struct alignas(64) Part {
    std::array<std::uint64_t, 8> from{};  // the word for each word
    std::uint8_t words = 0;               // which are meant
    std::uint32_t line = 0;
  };
  struct Word {
    std::byte* to = nullptr;
    std::byte* from = nullptr;
  };

  [[nodiscard]] std::uint32_t line_at(std::byte* place);
  void add_word(std::byte* from, std::byte* to, std::vector<std::vector<Part>>& parts);
  // Four lines, the usual number, stay in registers.
  void run_four_avx512(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept;
  void run_avx512(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept;

  std::vector<Line> lines_;
  std::vector<Part> parts_;
  std::vector<Word> words_;
};

}  // namespace onehop::detail
