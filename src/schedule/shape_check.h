// Checks of a single array, place or transfer: that it exists, lies inside its bounds and suits its type. Each returns
// the error ("expected ..., found ..."), or an empty string.
#pragma once

#include <string>

#include "onehop/schedule.h"

namespace onehop::detail {

[[nodiscard]] std::string array_problem(const ArraySpec& array, int ranks);

// Both assume that the arrays of the schedule are valid.
[[nodiscard]] std::string place_problem(const Schedule& schedule, const Place& place);
[[nodiscard]] std::string transfer_problem(const Schedule& schedule, const Transfer& transfer);

// Throws BadInput if `verify` would exceed its limits of memory or time. Assumes that the transfers are valid.
void check_cost(const Schedule& schedule);

}  // namespace onehop::detail
