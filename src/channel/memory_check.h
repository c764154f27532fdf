// Checks that the memory for the channels of all ranks of a machine is available. All ranks see the same free memory
// and must not count it twice.
#pragma once

#include <span>

#include "src/channel/channel_specs.h"
#include "src/group/group_state.h"
#include "src/group/shared_memory.h"

namespace onehop::detail {

// Throws Error, the same on every rank, if the ranks of a machine together need more memory for these channels than it
// had left when they began (`left`, by rank).
void check_memory(const GroupState& group, std::span<const Wanted> all, std::span<const MemoryLeft> left);

}  // namespace onehop::detail
