// Rails are the network interfaces of one host. A `RailAssignment` says which of them carries a message, or a piece of
// one. `assign_rails` (machine/rails.h) makes such lists, `simulate` reads them, and plans send messages accordingly
// (PlanOptions::rails).
#pragma once

#include <cstdint>
#include <vector>

namespace onehop {

// A piece of a message, and the rail that carries it. A message that is not cut is one piece. Everything that a rank
// sends to another in one round of a schedule is one message.
struct RailAssignment {
  int from = 0;
  int to = 0;
  int rail = 0;
  std::int64_t first_byte = 0;  // where the piece begins in its message
  std::int64_t bytes = 0;
  friend bool operator==(const RailAssignment&, const RailAssignment&) = default;
};

// One list for each round of a schedule.
using RailLists = std::vector<std::vector<RailAssignment>>;

}  // namespace onehop
