// Permutes words among a few cache lines. Each line is read once and written once, however many cycles go through it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/plan/direct/run_exchange.h"

namespace onehop::detail {

class LineExchange {
 public:
  LineExchange() = default;
  // Takes cycles as `rotate` does, to be executed together; their places must not overlap. The object stays empty if
  // runs are not parts of lines, if the runs of one line straddle two lines at some place, or if more than max_lines
  // lines are involved.
  LineExchange(const Runs& runs, const std::vector<std::vector<std::byte*>>& cycles);

  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
  // Has the effect of `rotate` on each cycle; `first` and `last` must be multiples of runs.in_line(). Words that keep
  // their places are neither read nor written.
  void run(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept;
  // The same word by word, for processors without 512-bit vectors.
  void run_portable(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept;

 private:
  static constexpr std::size_t max_lines = 64;  // 4 KiB of the stack

  struct Line {
    std::byte* first = nullptr;  // its address for element 0
    std::uint8_t changes = 0;    // a bit for each word that changes
    std::uint32_t parts = 0;     // end of its entries in parts_
  };
  // The words that a line receives from one source line.
  struct alignas(64) Part {
    std::array<std::uint64_t, 8> from{};  // the source word of each target word
    std::uint8_t words = 0;               // a bit for each target word concerned
    std::uint32_t line = 0;
  };
  // At most four target lines whose words come from at most four source lines: as many as stay in registers.
  struct alignas(64) Block {
    // Per target line: source words in the first two sources (from 8 on in the second), and in the other two.
    std::array<std::array<std::uint64_t, 8>, 4> early{};
    std::array<std::array<std::uint64_t, 8>, 4> late{};
    std::array<std::uint8_t, 4> is_late{};  // the words that come from the other two
    std::array<std::uint8_t, 4> changes{};
    std::array<std::uint8_t, 4> read{};  // the words read from each source
    std::array<std::byte*, 4> from{};    // the sources' `first`
    std::array<std::byte*, 4> to{};
  };
  struct Word {
    std::byte* to = nullptr;
    std::byte* from = nullptr;
  };

  [[nodiscard]] std::uint32_t line_at(std::byte* place);
  void add_word(std::byte* from, std::byte* to, std::vector<std::vector<Part>>& parts);
  // The lines that a block reads and those that it writes, as numbers of `lines_`.
  struct Members {
    std::vector<std::size_t> sources;
    std::vector<std::size_t> targets;
  };
  // Empty if the lines cannot be divided into blocks of at most four sources and four targets.
  [[nodiscard]] std::vector<Members> members_of_blocks() const;
  [[nodiscard]] Block block_of(const Members& members) const;
  void find_blocks();
  void run_blocks_avx512(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept;
  void run_avx512(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept;

  std::vector<Line> lines_;
  std::vector<Part> parts_;
  std::vector<Word> words_;
  // All lines, if they can be divided into such blocks: first those that no other block depends on, then pairs of
  // blocks that read each other's lines.
  std::vector<Block> blocks_;
  std::size_t alone_ = 0;  // number of blocks before the pairs
};

}  // namespace onehop::detail
