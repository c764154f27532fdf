#include <algorithm>
#include <string>

#include "src/plan/plan_run.h"

namespace onehop {

using detail::ProgramMessage;
using detail::ProgramRound;

// Tests the conditions on which move() acts, without acting. A rank checks them before it sleeps.
bool Plan::Impl::anything_to_do() {
  const ProgramRound& now = program.rounds[round];
  if (!now.direct.complete() && now.direct.anything_to_do(program.signals)) return true;
  for (const ProgramMessage& message : now.out) {
    if (message.fragment != message.last && program.senders[message.end].ready()) return true;
  }
  const auto arrived = [&](const ProgramMessage& message) { return has_arrived(now, message); };
  if (now.lockstep) return std::ranges::all_of(now.in, arrived);
  return std::ranges::any_of(now.in, arrived) || next_has_arrived(now);
}

detail::WaitingFor Plan::Impl::waiting_for() const {
  const ProgramRound& now = program.rounds[round];
  const std::string where =
      round == 0 && program.rounds.size() == 1 ? "" : " in round " + std::to_string(round) + " of a plan";
  const auto name = [&](int from, int to) {
    return "channel " + std::to_string(from) + " -> " + std::to_string(to) + where;
  };
  for (const ProgramMessage& message : now.in) {
    if (message.fragment >= message.in_order) continue;
    // A message that has arrived but may not be unpacked yet does not wait for its sender, which may have left in
    // order: it waits for a slot of its dependency (below), or in lockstep for another message.
    if ((now.lockstep || !may_unpack(now, message)) && program.receivers[message.end].has(message.chunk + 1)) continue;
    const int peer = program.receivers[message.end].peer();
    return {peer, name(peer, group->rank)};
  }
  if (now.next != now.ordered.size() && now.ordered[now.next].message != detail::ProgramOrdered::inside) {
    const int peer = program.receivers[now.in[now.ordered[now.next].message].end].peer();
    return {peer, name(peer, group->rank)};
  }
  for (const ProgramMessage& message : now.out) {
    const int peer = program.senders[message.end].peer();
    if (message.fragment != message.last) return {peer, name(group->rank, peer)};
  }
  if (const int peer = now.direct.waits_for(program.signals); peer >= 0) {
    return {peer, "an exchange in place with rank " + std::to_string(peer) + where};
  }
  return {};
}

void Plan::Impl::progress() {
  ProgramRound& now = program.rounds[round];
  for (const ProgramMessage& message : now.out) program.senders[message.end].progress();
  for (const ProgramMessage& message : now.in) {
    if (message.fragment != message.last) program.receivers[message.end].progress();
  }
}

}  // namespace onehop
