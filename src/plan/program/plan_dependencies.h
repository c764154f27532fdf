// Dependencies of exchanges in place: the outgoing fragments that must be packed before an incoming fragment is
// unpacked over their elements.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/plan/program/plan_part.h"
#include "src/plan/program/plan_program.h"

namespace onehop::detail {

// How far a message has come: its first `transfers` transfers, and `elements` elements of the next one.
struct MessagePosition {
  std::size_t transfers = 0;
  std::int64_t elements = 0;
  friend auto operator<=>(const MessagePosition&, const MessagePosition&) = default;
};

// Sets ProgramMessage::dependency and ProgramFragment::after of the round's incoming messages. `ends` has the position
// at the end of each fragment of the program.
void set_dependencies(Program& program, ProgramRound& round, const RoundPart& part,
                      std::span<const MessagePosition> ends);

}  // namespace onehop::detail
