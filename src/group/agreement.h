// Spreads the failure of one rank in a collective step to all ranks, so that no rank waits for one that has thrown.
#pragma once

#include <exception>
#include <string>

#include "src/group/group_state.h"

namespace onehop::detail {

// What an exception says.
[[nodiscard]] std::string message_of(const std::exception_ptr& error);

// Collective: how the step went on each rank; null: well. Throws the own failure where there is one, else, where other
// ranks failed, Error with the number and the words of the first of them.
void agree(GroupState& group, const std::string& step, const std::exception_ptr& own);

}  // namespace onehop::detail
