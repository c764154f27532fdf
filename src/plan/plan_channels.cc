#include "src/plan/plan_program.h"

namespace onehop::detail {
namespace {

template <class End>
PlanChannel channel_of(const End& end, bool sends) {
  const SlotRing& ring = end.ring();
  return {.peer = end.peer(),
          .sends = sends,
          .bytes = end.bytes(),
          .slots = static_cast<int>(ring.slots),
          .slot_bytes = ring.slot_bytes,
          .chunk_bytes = ring.chunk_bytes};
}

}  // namespace

std::vector<PlanChannel> channels_of(const Program& program) {
  std::vector<PlanChannel> found;
  for (std::size_t i = 0; i < program.senders.size(); ++i) {
    const Sender& sender = program.senders[i];
    PlanChannel& channel = found.emplace_back(channel_of(sender, true));
    channel.stores = sender.best_stores();
    channel.adaptive = sender.adaptive();
    channel.direct_puts = program.puts_done[i];
    channel.direct_stores = sender.best_stores(StoreTarget::array);
    channel.rails = sender.rails();
    channel.rails_assigned = !program.rails_assigned.empty() && program.rails_assigned[i];
  }
  for (const Receiver& receiver : program.receivers) found.push_back(channel_of(receiver, false));
  return found;
}

}  // namespace onehop::detail
