// How a process leaves its groups: in order, so that peers that need nothing more from it continue, or not, so that
// they see it as lost.
#pragma once

#include "src/group/group_state.h"

namespace onehop::detail {

// A group has been made in this process.
void entered(GroupState& group);

// The group goes. Its peers are told at once; or, once the process is ending, only if its exit status turns out to be
// 0.
void left(GroupState& group) noexcept;

// From now on the process only takes itself apart, with an exit status that is not known yet (Python's atexit).
void process_is_ending() noexcept;

}  // namespace onehop::detail
