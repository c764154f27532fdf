// Schedules as GOAL, the text format of the simulators LogGOPSim and ATLAHS, and the times of the model LogGOPS, which
// LogGOPSim computes: messages of any two ranks cost the same and never meet on a link.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onehop/machine/simulate.h"

namespace onehop {

// Whole nanoseconds, and nanoseconds per byte. All messages are sent eagerly: LogGOPSim's S must be at least the size
// of the largest message.
struct LogGops {
  std::int64_t latency = 2500;         // L
  std::int64_t overhead = 1500;        // o
  std::int64_t gap = 1000;             // g
  std::int64_t gap_per_byte = 6;       // G
  std::int64_t overhead_per_byte = 0;  // O
  friend bool operator==(const LogGops&, const LogGops&) = default;
};

struct GoalOptions {
  // Nanoseconds that every rank computes after it has started its messages: one number for all rounds, one per round,
  // or none.
  std::vector<std::int64_t> compute = {};
  // Nanoseconds per byte of local copies; 0 leaves them out.
  double copy_per_byte = 0;
};

// Returns the program of every rank: sends in order, receives, and calculations. A round's operations wait for those of
// the round before on the same rank. Throws BadInput if the traffic has too many messages to list.
[[nodiscard]] std::string to_goal(const Traffic& traffic, const GoalOptions& options = {});

// Returns the nanosecond at which each rank ends, as LogGOPSim would for the same program.
[[nodiscard]] std::vector<std::int64_t> loggops(const Traffic& traffic, const LogGops& costs,
                                                const GoalOptions& options = {});

}  // namespace onehop
