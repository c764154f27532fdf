// Checks that the memory for the channels of all ranks of a machine is available. All ranks see the same free memory
// and must not count it twice.
#pragma once

#include <span>

#include "src/channel/channel_specs.h"
#include "src/group/group_state.h"
#include "src/group/shared_memory.h"

namespace onehop::detail {

// Throws Error, the same on every rank, if the ranks of a machine together need more memory for the channels (`need`,
// by rank) than it had left when they began (`left`, by rank).
void check_memory(const GroupState& group, std::span<const std::int64_t> need, std::span<const MemoryLeft> left);

// The bytes that each rank needs for the requests of all ranks, and what a rank needs for its own if both ends of each
// channel ask for the same slots.
[[nodiscard]] std::vector<std::int64_t> memory_needs(const GroupState& group, std::span<const Wanted> all);
[[nodiscard]] std::int64_t own_memory_need(const GroupState& group, std::span<const Wanted> own);

}  // namespace onehop::detail
