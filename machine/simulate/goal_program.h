// Each rank's GOAL program: its operations and their dependencies.
#pragma once

#include <cstdint>
#include <vector>

#include "onehop/machine/goal.h"

namespace onehop::detail {

struct GoalOperation {
  enum class Kind : std::uint8_t { send, receive, calculate };  // in the order in which ready ones begin
  Kind kind = Kind::calculate;
  std::int64_t size = 0;  // bytes; of a calculation, nanoseconds
  int peer = 0;
  int tag = 0;
  std::vector<int> requires_done;  // operations of the same rank
  std::vector<int> requires_started;
};

using GoalProgram = std::vector<std::vector<GoalOperation>>;  // of each rank

[[nodiscard]] GoalProgram goal_program(const Traffic& traffic, const GoalOptions& options);

}  // namespace onehop::detail
