// The state of a plan and the steps of a run: plan.cc has the functions of `Plan`, round.cc moves messages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "onehop/plan.h"
#include "src/channel/waiting.h"
#include "src/plan/program/plan_program.h"

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
  // Whether move() would do anything. A rank checks this before it sleeps.
  [[nodiscard]] bool anything_to_do();
  // The rank and the channel for which the round waits, if nothing can be moved.
  [[nodiscard]] detail::WaitingFor waiting_for();
  void progress();
  [[nodiscard]] bool all_moved() const {
    return program.rounds.empty() || (open_messages == 0 && program.rounds[round].direct.complete());
  }
  // Does the swaps inside the rank that follow the exchange, once everything has arrived.
  void end_round();
  // Ends the round and begins the next one, if any. Returns false if the run is complete.
  bool next_round();

 private:
  // Calls visit(ready, step, waits_for) for every part of the round that is still open: a message, all messages in
  // lockstep, the list of parts that are combined in order, the direct exchange. ready() returns whether the part can
  // move now. step() moves it by a chunk, or returns false if it has decided not to. waits_for() names the rank without
  // which the part cannot move, or none.
  template <class Visit>
  void for_each_movable(detail::ProgramRound& now, const Visit& visit);

  [[nodiscard]] bool can_send(const detail::ProgramMessage& message) {
    return message.fragment != message.last && (message.chunk != 0 || program.senders[message.end].ready());
  }
  [[nodiscard]] bool may_unpack(const detail::ProgramRound& now, const detail::ProgramMessage& message) const;
  [[nodiscard]] bool has_arrived(const detail::ProgramRound& now, const detail::ProgramMessage& message) const;
  // Whether the next part of ProgramRound::ordered has arrived.
  [[nodiscard]] bool next_has_arrived(const detail::ProgramRound& now) const;

  // Moves the next chunk of a message that is ready.
  bool send_chunk(detail::ProgramMessage& message);
  // The same for a sender in shared memory that chooses how it moves a fragment.
  bool send_adaptively(detail::ProgramMessage& message);
  bool send_lockstep(detail::ProgramRound& now);
  void receive_chunk(detail::ProgramMessage& message);
  void receive_next(detail::ProgramRound& now);
  void unpack(const detail::ProgramChunk& chunk, Receiver& receiver);
  void end_fragment(detail::ProgramMessage& message);
  void end_received_fragment(detail::ProgramMessage& message);
  // Returns true if the receivers' arrays have been waited for long enough.
  bool stop_deferring();
  [[nodiscard]] std::string in_this_round() const;
};

}  // namespace onehop
