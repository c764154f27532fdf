#include "onehop/plan.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "src/base/clock.h"
#include "src/channel/adaptive_stores.h"
#include "src/group/driven.h"
#include "src/plan/direct_put.h"
#include "src/plan/plan_packing.h"
#include "src/plan/plan_run.h"

namespace onehop {

using detail::ProgramChunk;
using detail::ProgramFragment;
using detail::ProgramMessage;
using detail::ProgramRound;

namespace {

constexpr std::uint32_t polls_per_liveness_check = 512;

[[noreturn]] void throw_broken() {
  throw BadInput("this plan has failed and cannot be used again; make a new group and a new plan");
}

[[noreturn]] void throw_undefined(const PeerLost& lost) {
  throw PeerLost(lost.rank(), lost.what() + std::string("; the elements that this plan writes are undefined now"));
}

}  // namespace

bool Plan::Impl::send_chunk(ProgramMessage& message) {
  Sender& sender = program.senders[message.end];
  if (message.fragment == message.last || (message.chunk == 0 && !sender.ready())) return false;
  const ProgramFragment& fragment = program.fragments[message.fragment];
  if (sender.adaptive()) [[unlikely]]
    return send_adaptively(message);
  const ProgramChunk& chunk = program.chunks[fragment.first + message.chunk];
  detail::pack_chunk(program, message.end, chunk, sender.payload());
  ++message.chunk;
  const bool complete = fragment.first + message.chunk == fragment.last;
  sender.publish(complete ? detail::whole : message.chunk, chunk.end);
  if (complete) end_fragment(message);
  return true;
}

bool Plan::Impl::send_adaptively(ProgramMessage& message) {
  Sender& sender = program.senders[message.end];
  const ProgramFragment& fragment = program.fragments[message.fragment];
  if (message.chunk == 0 && fragment.first_put != fragment.last_put) {
    if (!message.decided) message.puts = detail::puts_next(sender, fragment.bytes);
    message.decided = true;
    if (message.puts && sender.exposed() == epoch) {
      detail::put_directly(program, message.end, fragment);
      sender.publish(detail::whole, fragment.bytes);
      message.decided = false;
      end_fragment(message);
      return true;
    }
    if (message.puts && may_defer) {
      deferring = true;
      return false;
    }
  }
  const ProgramChunk& chunk = program.chunks[fragment.first + message.chunk];
  message.decided = false;
  detail::pack_adaptively(program, message.end, chunk, fragment.bytes);
  ++message.chunk;
  const bool complete = fragment.first + message.chunk == fragment.last;
  sender.publish(complete ? detail::whole : message.chunk, chunk.end);
  if (complete) end_fragment(message);
  return true;
}

void Plan::Impl::end_fragment(ProgramMessage& message) {
  program.senders[message.end].advance();
  counters.bytes_sent += program.fragments[message.fragment].bytes;
  message.chunk = 0;
  if (++message.fragment == message.last) {
    ++counters.messages_sent;
    --open_messages;
  }
}

bool Plan::Impl::stop_deferring() {
  const double now = base::steady_seconds();
  if (deferring_since == 0) deferring_since = now;
  may_defer = now - deferring_since < program.patience;
  return !may_defer;
}

bool Plan::Impl::send(ProgramMessage& message) {
  bool moved = false;
  while (send_chunk(message)) moved = true;
  return moved;
}

bool Plan::Impl::send_in_lockstep(ProgramRound& now) {
  bool moved = false;
  for (bool more = true; more;) {
    more = false;
    for (ProgramMessage& message : now.out) more |= send_chunk(message);
    moved |= more;
  }
  return moved;
}

// Two functions of the hot path, each with two callers: a call would cost ten instructions.
[[gnu::always_inline]] inline void Plan::Impl::end_received_fragment(ProgramMessage& message) {
  program.receivers[message.end].release();
  counters.bytes_received += program.fragments[message.fragment].bytes;
  message.chunk = 0;
  if (++message.fragment == message.last) {
    ++counters.messages_received;
    --open_messages;
  }
}

[[gnu::always_inline]] inline void Plan::Impl::unpack(const ProgramChunk& chunk, Receiver& receiver) {
  if (receiver.mark() != 0) [[unlikely]] {
    detail::unpack_marked(program, chunk, receiver);
  } else {
    detail::unpack_chunk(program, chunk, receiver.payload());
  }
}

void Plan::Impl::receive_chunk(ProgramMessage& message) {
  const ProgramFragment& fragment = program.fragments[message.fragment];
  unpack(program.chunks[fragment.first + message.chunk], program.receivers[message.end]);
  if (fragment.first + ++message.chunk < fragment.last) return;
  end_received_fragment(message);
}

bool Plan::Impl::receive(const ProgramRound& now, ProgramMessage& message) {
  bool moved = false;
  for (; has_arrived(now, message); moved = true) receive_chunk(message);
  return moved;
}

// Waiting for the last of the messages cannot deadlock: no rank's packing waits for its own unpacking, and the rank
// that is furthest behind in unpacking has free slots at all its peers (docs/design/protocol.md).
bool Plan::Impl::receive_in_lockstep(ProgramRound& now) {
  const auto arrived = [&](const ProgramMessage& message) { return has_arrived(now, message); };
  bool moved = false;
  for (; std::ranges::all_of(now.in, arrived); moved = true) {
    for (ProgramMessage& message : now.in) receive_chunk(message);
  }
  return moved;
}

// A sender packs these messages without waiting for anything but slots, and what comes before the next part of its
// message has been released. So the part arrives (docs/design/protocol.md, "Messages that combine").
bool Plan::Impl::receive_in_order(ProgramRound& now) {
  bool moved = false;
  for (; next_has_arrived(now); moved = true) {
    const detail::ProgramOrdered& next = now.ordered[now.next++];
    if (next.message == detail::ProgramOrdered::inside) {
      const std::span copies(now.ordered_copies);
      counters.bytes_local +=
          detail::copy_inside(program, copies.subspan(next.part.first, next.part.last - next.part.first));
      continue;
    }
    ProgramMessage& message = now.in[next.message];
    unpack(next.part, program.receivers[message.end]);
    if (next.ends_fragment) end_received_fragment(message);
  }
  return moved;
}

void Plan::Impl::begin_round() {
  ProgramRound& now = program.rounds[round];
  for (ProgramMessage& message : now.out) message.fragment = message.first;
  for (ProgramMessage& message : now.in) message.fragment = message.first;
  now.next = 0;
  open_messages = now.out.size() + now.in.size();
  round_done = false;
  ++epoch;
  may_defer = runs_on;
  deferring_since = 0;
  if (program.exposes) {
    for (const ProgramMessage& message : now.in) {
      if (message.exposes) program.receivers[message.end].expose(epoch);
    }
  }
  now.direct.begin(program.signals);
  // Messages first, so that they travel during the copies inside the rank.
  if (now.lockstep) {
    send_in_lockstep(now);
  } else {
    for (ProgramMessage& message : now.out) send(message);
  }
  counters.bytes_local += detail::copy_inside(program, now.copies);
  if (!now.direct.empty()) now.direct.move(program.signals);
}

void Plan::Impl::end_round() {
  if (round_done) return;
  const ProgramRound& now = program.rounds[round];
  for (const detail::ProgramSwap& swap : now.inside) {
    detail::swap_bits(swap.array, swap.bits, swap.a, swap.b, swap.element_bytes);
  }
  counters.messages_sent += now.moved.messages_sent;
  counters.messages_received += now.moved.messages_received;
  counters.bytes_sent += now.moved.bytes_sent;
  counters.bytes_received += now.moved.bytes_received;
  counters.bytes_local += now.moved.bytes_local;
  round_done = true;
}

void Plan::Impl::begin(bool at_once) {
  if (state == State::broken) throw_broken();
  group->check_process();
  if (state == State::running) throw BadInput("start() was called twice without a finish() in between");
  state = State::broken;  // stays so after an exception
  round = 0;
  runs_on = at_once;
  program.guard.poison();
  if (!program.rounds.empty()) begin_round();
  state = State::running;
}

bool Plan::Impl::next_round() {
  if (program.rounds.empty()) return false;
  end_round();
  if (round + 1 >= program.rounds.size()) return false;
  ++round;
  begin_round();
  return true;
}

bool Plan::Impl::move() {
  ProgramRound& now = program.rounds[round];
  deferring = false;
  bool moved = now.lockstep && receive_in_lockstep(now);
  if (now.lockstep) moved |= send_in_lockstep(now);
  for (ProgramMessage& message : now.in) {
    if (now.lockstep || message.fragment == message.last) continue;
    moved |= receive(now, message);
  }
  if (now.next != now.ordered.size()) moved |= receive_in_order(now);
  for (ProgramMessage& message : now.out) {
    if (!now.lockstep && message.fragment != message.last) moved |= send(message);
  }
  if (!now.direct.complete()) moved |= now.direct.move(program.signals);
  if (deferring && !moved) [[unlikely]]
    return stop_deferring();
  return moved;
}

Plan::Plan(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
           const PlanOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->group = group.state();
  impl_->program = detail::make_program(group, schedule, arrays, options);
}

Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

void Plan::start() {
  impl_->begin(false);
  impl_->program.guard.close();
}
void Plan::finish() { impl_->finish(); }
void Plan::run() {
  impl_->begin(true);
  impl_->finish();
}

void Plan::Impl::wait_for_round() {
  detail::Waiting waiting(*group, program.polls);
  while (!all_moved()) {
    if (move()) {
      waiting.reset();
      continue;
    }
    if (program.polls) progress();
    waiting.idle([&] { return anything_to_do(); }, [&] { return waiting_for(); });
  }
}

void Plan::Impl::finish() {
  if (state == State::broken) throw_broken();
  group->check_process();
  if (state == State::idle) throw BadInput("finish() needs a start() before it");
  state = State::broken;  // until the run is complete; stays so after an exception
  program.guard.open();
  try {
    do {
      wait_for_round();
    } while (next_round());
  } catch (const PeerLost& lost) {
    throw_undefined(lost);
  }
  state = State::idle;
  ++counters.runs;
  program.guard.report();
}

bool Plan::test() {
  Impl& run = *impl_;
  if (run.state == Impl::State::broken) throw_broken();
  run.group->check_process();
  if (run.state == Impl::State::idle) return true;
  run.state = Impl::State::broken;  // stays so after an exception
  run.program.guard.open();
  do {
    if (run.program.polls) run.progress();
    while (!run.all_moved() && run.move()) {
    }
  } while (run.all_moved() && run.next_round());
  const bool complete = run.all_moved();
  // Polling is a form of waiting: other messages must progress, and a lost peer must be noticed.
  if (!complete) detail::Driven::drive_any();
  if (!complete && ++run.failed_polls % polls_per_liveness_check == 0) {
    try {
      detail::Waiting(*run.group, run.program.polls)
          .check_peers([&] { return run.anything_to_do(); }, [&] { return run.waiting_for(); });
    } catch (const PeerLost& lost) {
      throw_undefined(lost);
    }
  }
  if (!complete) run.program.guard.close();
  run.state = Impl::State::running;
  return complete;
}

const PlanCounters& Plan::counters() const noexcept { return impl_->counters; }
std::int64_t Plan::staging_bytes() const noexcept { return impl_->program.staging_bytes; }
std::vector<PlanChannel> Plan::channels() const { return detail::channels_of(impl_->program); }

}  // namespace onehop
