// The memory that this process can still allocate.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace onehop::detail {

inline constexpr std::int64_t no_memory_limit = std::numeric_limits<std::int64_t>::max();

// Bytes that this process can still allocate: of the machine's memory, and within its tightest control group.
struct MemoryLeft {
  std::int64_t system = no_memory_limit;
  std::int64_t control_group = no_memory_limit;
  std::uint64_t control_group_id = 0;
  std::int64_t limit = no_memory_limit;  // the least limit of a control group, whatever is in use
};
// In tests, ONEHOP_TEST_FREE_MEMORY (in bytes) replaces the machine's free memory, and `root` stands before the paths
// of control groups.
[[nodiscard]] MemoryLeft memory_left(const std::string& root = {});
// Whether it does; an allocation then does not reduce the free memory.
[[nodiscard]] bool memory_is_pretended();

// The smaller of the two.
[[nodiscard]] std::int64_t available_memory();
// Throws BadInput if it does not hold `number` of `things`, of `bytes` each, which `what` is about to make. A short
// input can stand for more of them than any memory holds.
void check_room(const std::string& what, double number, const std::string& things, double bytes);
// The memory of the machine, or the least limit of a control group if that is smaller, whatever is in use now.
[[nodiscard]] std::int64_t whole_memory();

}  // namespace onehop::detail
