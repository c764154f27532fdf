// Exchanges in place: which outgoing fragments must be packed before an incoming one may be unpacked over their elements.
#pragma once

#include "src/plan/plan_part.h"
#include "src/plan/plan_program.h"

namespace onehop::detail {

// Fills in ProgramMessage::gate and ProgramFragment::after of the round's incoming messages. Throws BadInput for an exchange that would
// stand still: one that lists its slices in different orders in the two directions, and is longer than the slots hold.
void set_gates(Program& program, ProgramRound& round, const RoundPart& part);

}  // namespace onehop::detail
