// Rails of a plan: which network interface carries each byte of what this rank sends.
#pragma once

#include <span>

#include "onehop/rail_assignment.h"
#include "onehop/schedule.h"
#include "src/plan/program/plan_part.h"
#include "src/plan/program/plan_program.h"

namespace onehop::detail {

// Throws BadInput unless there is one list for each round, and the pieces of every message of this rank that is listed
// add up to a message of the schedule. Lists of other ranks are theirs to check.
void check_rails(const RailLists& rails, const Schedule& schedule, std::span<const RoundPart> parts, int rank);

// Tells the senders of the program which rails their fragments take. Messages that are not listed, and those of senders
// that have one rail, take the transport's choice. Throws BadInput for a rail that the ranks do not have.
void assign_rails(Program& program, const RailLists& rails, int rank);

}  // namespace onehop::detail
