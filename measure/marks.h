// The use of an exchange's arrays: one word of each line that crosses ranks is written before and read after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onehop/schedule.h"

namespace onehop::measure {

// The places that this rank writes before an exchange and reads after it, in the first round of a schedule whose
// elements have at least 8 bytes.
class Marks {
 public:
  Marks(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays);

  void dirty() noexcept;
  void check(const std::string& candidate);  // throws Error if an exchange delivered other words
  void read() noexcept;                      // only reads; for candidates that move nothing or round

 private:
  // Marks at equal distances, numbered from `number` on; the numbers are the same on both ranks. A list of all places
  // would take a part of the caches.
  struct Row {
    std::byte* first;
    std::int64_t step;
    std::uint64_t number;
    std::uint64_t count;
  };

  static void add(std::vector<Row>& rows, const Schedule& schedule, const Place& place,
                  const std::vector<std::int64_t>& chosen, std::span<const std::span<std::byte>> arrays);
  static void append(std::vector<Row>& rows, std::byte* mark, std::uint64_t number);

  std::vector<Row> out_;
  std::vector<Row> in_;
  std::uint64_t written_ = 0;
  std::uint64_t checked_ = 0;
  volatile std::uint64_t sink_ = 0;
};

}  // namespace onehop::measure
