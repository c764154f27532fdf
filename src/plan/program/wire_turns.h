// Transfers of a message whose elements share cache lines take turns on the wire, so that each line is fetched once:
// the two faces of the last dimension of an array, for example, of which the end of a row and the beginning of the next
// one are neighbours.
#pragma once

#include <cstdint>
#include <vector>

#include "onehop/schedule.h"
#include "src/plan/program/plan_part.h"

namespace onehop::detail {

// The elements of a turn of each transfer of a message; 0: it does not take turns with others.
using Turns = std::vector<std::int64_t>;

// The turns of a message to or from `peer` in a round. The other rank finds the same.
[[nodiscard]] Turns turns_of(const Transfers& message, int peer, const Schedule& schedule, const RoundPart& part);

}  // namespace onehop::detail
