// The speed of light of packing: pieces of at least a line are copied by memcpy; of shorter ones, each line is touched
// once. Nothing else is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/schedule.h"

namespace onehop::bench {

// Moves what a rank's packing, copies inside the rank and unpacking move, one of the three after the other: pieces of
// at least a line by memcpy. Of others it reads a number of each line that is only read, and writes one to each line
// that is written, in the order of their addresses. Memory of its own stands for the slots. Needs elements of at least
// 8 bytes, in the first round of the schedule.
class PackingLines {
 public:
  PackingLines(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays);

  void touch() noexcept;

 private:
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };
  // One word of each line of an array or of the slots, and whether they are written. The numbers of words take less
  // cache than their addresses.
  struct Lines {
    std::byte* first;
    bool writes;
    std::vector<std::uint32_t> words;
  };
  struct Phase {
    std::vector<Copy> copies;
    std::vector<Lines> lines;
  };

  class Builder;

  std::vector<Phase> phases_;
  std::vector<std::byte> slots_;
  volatile std::uint64_t sink_ = 0;
};

}  // namespace onehop::bench
