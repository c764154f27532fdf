// The copies of a round that stay inside a rank.
#pragma once

#include <cstdint>

#include "src/plan/combine_order.h"
#include "src/plan/plan_part.h"
#include "src/plan/plan_program.h"
#include "src/plan/step_builder.h"

namespace onehop::detail {

// Adds them to the round, cut into small parts that are sorted by address: the two faces of a periodic dimension touch
// the same cache lines. Those that `order` keeps are added to it. Returns the bytes of the longest, for the scratch.
std::int64_t add_inside_copies(Program& program, StepBuilder& steps, ProgramRound& round, const RoundPart& part,
                               CombineOrder& order);

}  // namespace onehop::detail
