// Compares what all ranks of a machine are about to take with what it has left. All ranks see the same free memory and
// must not count it twice.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "src/base/memory_left.h"
#include "src/group/group_state.h"

namespace onehop::detail {

// Throws Error if the ranks of a machine or control group together need more memory (`need`, by rank) than it had left
// when they began (`left`, by rank). The same arguments give the same error on every rank. `what` names the purpose,
// `advice` ends the message.
void check_memory(const GroupState& group, std::span<const std::int64_t> need, std::span<const MemoryLeft> left,
                  const std::string& what, const std::string& advice);

}  // namespace onehop::detail
