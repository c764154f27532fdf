// The order in which a rank combines in a round. Transfers from different ranks that combine into the same element do
// so in the order of the round, whatever arrives first.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "src/plan/program/plan_part.h"
#include "src/plan/program/plan_program.h"

namespace onehop::detail {

class CombineOrder {
 public:
  // Finds the messages to this rank, and the copies inside it, that have elements in common. Exact exchanges have none.
  CombineOrder(const Schedule& schedule, const RoundPart& part, int rank);

  // Whether the message from a peer is unpacked, or a copy inside the rank done, in the order of the round.
  [[nodiscard]] bool keeps_message(int peer) const { return peers_.contains(peer); }
  [[nodiscard]] bool keeps_copy(const Transfer* transfer) const { return own_.contains(transfer); }

  // Adds a part of such a transfer. Call it for the parts of a message in their order on the wire.
  void add(const Transfer* transfer, const ProgramOrdered& part);

  // All parts, in the order of the round.
  [[nodiscard]] std::vector<ProgramOrdered> parts();

 private:
  std::set<int> peers_;
  std::set<const Transfer*> own_;
  std::vector<std::pair<const Transfer*, ProgramOrdered>> parts_;
};

}  // namespace onehop::detail
