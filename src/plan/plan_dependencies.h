// Dependencies of exchanges in place: the outgoing fragments that must be packed before an incoming fragment is
// unpacked over their elements.
#pragma once

#include "src/plan/plan_part.h"
#include "src/plan/plan_program.h"

namespace onehop::detail {

// Whether some element range is read by the transfers `out` of a rank and written by its transfers `in`: then the two
// are an exchange in place (`verify` allows no other overlap).
[[nodiscard]] bool is_exchange(const Transfers& out, const Transfers& in);

// Sets ProgramMessage::dependency and ProgramFragment::after of the round's incoming messages. Throws BadInput for an
// exchange that would deadlock, because it lists its slices in different orders in the two directions and is longer
// than the slots hold.
void set_dependencies(Program& program, ProgramRound& round, const RoundPart& part);

}  // namespace onehop::detail
