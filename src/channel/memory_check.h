// The memory that channels take, which src/group/memory_pools.h compares with what is left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/channel/channel_specs.h"
#include "src/group/group_state.h"

namespace onehop::detail {

// The bytes that each rank needs for the requests of all ranks, and what a rank needs for its own if both ends of each
// channel ask for the same slots.
[[nodiscard]] std::vector<std::int64_t> memory_needs(const GroupState& group, std::span<const Wanted> all);
[[nodiscard]] std::int64_t own_memory_need(const GroupState& group, std::span<const Wanted> own);

}  // namespace onehop::detail
