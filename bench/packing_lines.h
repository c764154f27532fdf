// The speed of light of packing: every cache line that packing and unpacking touch is touched once, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/schedule.h"

namespace onehop::bench {

// Reads one number of each line that a rank's packing, unpacking and copies inside the rank read, and writes one number
// to each line that they write, in their order. Memory of its own stands for the slots. Needs elements of at least 8
// bytes, in the first round of the schedule.
class PackingLines {
 public:
  PackingLines(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays);

  void touch() noexcept;

 private:
  // `count` numbers, `step` bytes apart, each in a line of its own.
  struct Row {
    std::byte* first;
    std::int64_t count;
    std::int64_t step;
    bool writes;
  };

  void add_row(std::byte* first, std::int64_t bytes, std::int64_t stride, bool writes);
  void add_face(const Schedule& schedule, const Place& place, std::span<const std::span<std::byte>> arrays,
                bool writes);

  std::vector<Row> rows_;
  std::vector<std::byte> slots_;
  volatile std::uint64_t sink_ = 0;
};

}  // namespace onehop::bench
