// The state of a plan and the steps of a run. plan.cc moves messages; plan_waiting.cc says what a run waits for.
#pragma once

#include <cstdint>
#include <memory>

#include "onehop/plan.h"
#include "src/channel/waiting.h"
#include "src/plan/plan_program.h"

namespace onehop {

struct Plan::Impl {
  std::shared_ptr<detail::GroupState> group;
  detail::Program program;
  PlanCounters counters;
  enum class State { idle, running, broken } state = State::idle;
  std::size_t round = 0;
  std::size_t open_messages = 0;  // of the round, in both directions
  std::uint64_t epoch = 0;        // rounds begun so far
  // No other computation comes between start() and finish().
  bool runs_on = false;
  // Whether senders may wait until a receiver exposes its array, one does, and since when (0: not yet).
  bool may_defer = false;
  bool deferring = false;
  double deferring_since = 0;
  bool round_done = false;
  std::uint32_t failed_polls = 0;

  void begin(bool at_once);
  void finish();
  void begin_round();
  // Waits until everything of the round has moved.
  void wait_for_round();
  // Moves what can be moved in the round, in one pass; returns whether anything moved.
  bool move();
  bool send(detail::ProgramMessage& message);
  bool receive(const detail::ProgramRound& now, detail::ProgramMessage& message);
  // The same for all messages of a round in lockstep, as far as all of them can proceed.
  bool send_in_lockstep(detail::ProgramRound& now);
  bool receive_in_lockstep(detail::ProgramRound& now);
  // Unpacks what must be combined in the order of the round, as far as the next part has arrived.
  bool receive_in_order(detail::ProgramRound& now);
  // Moves the next chunk of a message. send_chunk returns false if there is none or no free slot; for receive_chunk the
  // chunk must have arrived.
  bool send_chunk(detail::ProgramMessage& message);
  void receive_chunk(detail::ProgramMessage& message);
  void unpack(const detail::ProgramChunk& chunk, Receiver& receiver);
  // The same for a sender in shared memory that chooses how it moves a fragment.
  bool send_adaptively(detail::ProgramMessage& message);
  void end_fragment(detail::ProgramMessage& message);
  void end_received_fragment(detail::ProgramMessage& message);
  // Returns true if the receivers' arrays have been waited for long enough.
  bool stop_deferring();
  [[nodiscard]] bool has_arrived(const detail::ProgramRound& now, const detail::ProgramMessage& message) const;
  [[nodiscard]] bool next_has_arrived(const detail::ProgramRound& now) const;
  [[nodiscard]] bool may_unpack(const detail::ProgramRound& now, const detail::ProgramMessage& message) const;
  [[nodiscard]] bool anything_to_do();
  [[nodiscard]] detail::WaitingFor waiting_for() const;
  void progress();
  [[nodiscard]] bool all_moved() const {
    return program.rounds.empty() || (open_messages == 0 && program.rounds[round].direct.complete());
  }
  // Does the swaps inside the rank that follow the exchange, once everything has arrived.
  void end_round();
  // Ends the round and begins the next one, if any. Returns false if the run is complete.
  bool next_round();
};

inline bool Plan::Impl::may_unpack(const detail::ProgramRound& now, const detail::ProgramMessage& message) const {
  if (message.dependency < 0) return true;
  const detail::ProgramMessage& out = now.out[static_cast<std::size_t>(message.dependency)];
  return out.fragment - out.first >= program.fragments[message.fragment].after;
}

inline bool Plan::Impl::has_arrived(const detail::ProgramRound& now, const detail::ProgramMessage& message) const {
  if (message.fragment >= message.in_order || !may_unpack(now, message)) return false;
  const detail::ProgramFragment& fragment = program.fragments[message.fragment];
  const bool last = fragment.first + message.chunk + 1 == fragment.last;
  return program.receivers[message.end].has(last ? detail::whole : message.chunk + 1);
}

// Whether the next part of ProgramRound::ordered has arrived.
inline bool Plan::Impl::next_has_arrived(const detail::ProgramRound& now) const {
  if (now.next == now.ordered.size()) return false;
  const detail::ProgramOrdered& next = now.ordered[now.next];
  if (next.message == detail::ProgramOrdered::inside) return true;
  const detail::ProgramMessage& message = now.in[next.message];
  return message.fragment >= message.in_order && program.receivers[message.end].has(next.arrived);
}

}  // namespace onehop
