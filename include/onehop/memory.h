// Checks before a large allocation that there is memory for it.
#pragma once

#include <cstdint>
#include <string>

#include "onehop/group.h"

namespace onehop {

// Throws Error, the same on all ranks, if the ranks of a machine or control group are together about to take more
// memory than it has left: `bytes` on this rank. `what` names the purpose in the message, which ends with `advice`.
// Collective. See available_memory() for the memory that is left.
void require_memory(const Group& group, std::int64_t bytes, const std::string& what, const std::string& advice);

}  // namespace onehop
