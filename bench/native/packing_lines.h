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
// at least a line by a copy. Of others it reads a number of each line that is only read, and writes one to each line
// that is written, in the order of their addresses. Needs elements of at least 8 bytes, in the first round of the
// schedule.
class PackingLines {
 public:
  // The bytes that a rank sends in one exchange, and those that it receives.
  struct Crossing {
    std::int64_t out = 0;
    std::int64_t in = 0;
  };
  [[nodiscard]] static Crossing crossing(const Schedule& schedule, int rank);

  // Where the bytes that cross are written to, and where those that arrive are read.
  struct Slots {
    std::byte* out = nullptr;
    std::byte* in = nullptr;
  };
  using CopyFunction = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

  // Memory of its own stands for the slots.
  PackingLines(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays);
  PackingLines(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays, const Slots& slots);

  void touch() noexcept;
  // The parts of touch(). pack() copies by `copy`, the others by memcpy.
  void pack(CopyFunction copy) noexcept { run(phases_[0], copy); }
  void move_inside() noexcept;
  void unpack() noexcept;
  // Whether it copies all bytes, because no piece is shorter than a line.
  [[nodiscard]] bool copies_everything() const noexcept;

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

  void build(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays, const Slots& slots);
  void run(const Phase& phase, CopyFunction copy) noexcept;

  std::vector<Phase> phases_;  // packing, copies inside the rank, unpacking
  std::vector<std::byte> own_slots_;
  std::uint64_t sink_ = 0;
};

}  // namespace onehop::bench
