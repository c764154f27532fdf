// Arrays of a plan that lie in the same memory.
#pragma once

#include <cstddef>
#include <span>

#include "onehop/schedule.h"

namespace onehop::detail {

// Throws BadInput if a round writes memory through one array of `rank` and accesses it through another: nothing orders
// the two. `verify` and the plan's other checks see each array by itself.
void check_memory_overlap(const Schedule& schedule, std::span<const std::span<std::byte>> arrays, int rank);

}  // namespace onehop::detail
