// The events of a plan in the trace of a run: its starts and finishes, with their bytes and rounds.
#pragma once

#include <memory>
#include <string>

#include "src/group/group_state.h"
#include "src/plan/program/plan_program.h"

namespace onehop::detail {

// Null unless the run is traced. `program` is complete, and `name` that of its schedule.
[[nodiscard]] std::unique_ptr<PlanWatch> make_plan_trace(const Program& program, const std::string& name,
                                                         const GroupState& group);

}  // namespace onehop::detail
