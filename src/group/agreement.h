// Spreads the failure of one rank in a collective step to all ranks, so that no rank waits for one that has thrown.
#pragma once

#include <exception>
#include <string>

#include "src/group/group_state.h"

namespace onehop::detail {

// Returns the message of an exception.
[[nodiscard]] std::string message_of(const std::exception_ptr& error);

// Collective. `own` is this rank's failure in `step`, or null. Rethrows `own` if it is set; else throws Error with the
// number and the message of the first rank that failed, if any did.
void agree(GroupState& group, const std::string& step, const std::exception_ptr& own);

}  // namespace onehop::detail
