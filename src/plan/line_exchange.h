// Permutes words among a few cache lines. Each line is read once and written once, however many cycles go through it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/plan/run_exchange.h"

namespace onehop::detail {

class LineExchange {
 public:
  LineExchange() = default;
  // The cycles as `rotate` has them, done together; their places must not overlap. Empty where runs are no parts of
  // lines, or places lie so that the runs of one line begin in one line and end in the next, or too many lines have to
  // be held at once.
  LineExchange(const Runs& runs, const std::vector<std::vector<std::byte*>>& cycles);

  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
  // The same as `rotate` for one cycle after the other; `first` and `last` must be multiples of runs.in_line(). Words
  // that keep their places are neither read nor written.
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
  // At most four lines whose words come from at most four lines: as many as stay in registers.
  struct alignas(64) Block {
    std::array<std::array<std::uint64_t, 8>, 4>
        early{};  // for each line: the words of the first two sources; from 8 on of the second
    std::array<std::array<std::uint64_t, 8>, 4> late{};  // those of the other two
    std::array<std::uint8_t, 4> is_late{};               // which words are of the other two
    std::array<std::uint8_t, 4> changes{};
    std::array<std::uint8_t, 4> read{};  // which words of each source
    std::array<std::byte*, 4> from{};    // the sources' `first`
    std::array<std::byte*, 4> to{};
  };
  struct Word {
    std::byte* to = nullptr;
    std::byte* from = nullptr;
  };

  [[nodiscard]] std::uint32_t line_at(std::byte* place);
  void add_word(std::byte* from, std::byte* to, std::vector<std::vector<Part>>& parts);
  void find_blocks();
  void run_blocks_avx512(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept;
  void run_avx512(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept;

  std::vector<Line> lines_;
  std::vector<Part> parts_;
  std::vector<Word> words_;
  // All lines, if they fall into such blocks: first those that read what they write, then pairs that read each other's
  // lines.
  std::vector<Block> blocks_;
  std::size_t alone_ = 0;  // how many stand by themselves
};

}  // namespace onehop::detail
