// Direct puts: a sender writes a fragment straight into the receiver's array, which lies in memory that both share, so
// that it is copied once and not twice. The receiver *exposes* its array when it begins a round; a fragment whose
// receiver has not begun goes through the slot as usual (docs/design/protocol.md, "Direct puts").
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/direct/direct_exchange.h"
#include "src/plan/program/plan_part.h"
#include "src/plan/program/plan_program.h"
#include "src/plan/program/step_builder.h"

namespace onehop::detail {

// Prepares the puts of this rank, and lets those peers that can write into its arrays do so. Call it when the rounds of
// the program are complete; maps arrays of other ranks.
void add_puts(Program& program, StepBuilder& steps, const std::vector<RoundPart>& parts, const SharedArrays& shared,
              int rank);

// Writes a fragment into the receiver's array and marks the present slot so. A later release store becomes visible
// after it.
void put_directly(Program& program, std::uint32_t end, const ProgramFragment& fragment);

}  // namespace onehop::detail
