// How a round moves. `for_each_movable` lists what is open, with the condition on which it moves: move() acts on the
// conditions, anything_to_do() tests them before a rank sleeps, and waiting_for() names what is missing. The proof that
// no rank waits for ever needs the three to agree (docs/design/protocol.md).
#include <algorithm>
#include <span>
#include <string>

#include "src/base/clock.h"
#include "src/plan/copy/plan_packing.h"
#include "src/plan/direct/direct_put.h"
#include "src/plan/run/plan_run.h"

namespace onehop {

using detail::ProgramChunk;
using detail::ProgramFragment;
using detail::ProgramMessage;
using detail::ProgramOrdered;
using detail::ProgramRound;
using detail::WaitingFor;

bool Plan::Impl::send_chunk(ProgramMessage& message) {
  Sender& sender = program.senders[message.end];
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
    if (!message.decided) message.puts = sender.puts_next(fragment.bytes);
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

// Chunk by chunk, because the messages take elements from the same cache lines.
bool Plan::Impl::send_lockstep(ProgramRound& now) {
  bool moved = false;
  for (ProgramMessage& message : now.out) moved |= can_send(message) && send_chunk(message);
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

void Plan::Impl::receive_next(ProgramRound& now) {
  const ProgramOrdered& next = now.ordered[now.next++];
  if (next.message == ProgramOrdered::inside) {
    const std::span copies(now.ordered_copies);
    counters.bytes_local +=
        detail::copy_inside(program, copies.subspan(next.part.first, next.part.last - next.part.first));
    return;
  }
  ProgramMessage& message = now.in[next.message];
  unpack(next.part, program.receivers[message.end]);
  if (next.ends_fragment) end_received_fragment(message);
}

inline bool Plan::Impl::may_unpack(const ProgramRound& now, const ProgramMessage& message) const {
  if (message.dependency < 0) return true;
  const ProgramMessage& out = now.out[static_cast<std::size_t>(message.dependency)];
  return out.fragment - out.first >= program.fragments[message.fragment].after;
}

inline bool Plan::Impl::has_arrived(const ProgramRound& now, const ProgramMessage& message) const {
  if (message.fragment >= message.in_order || !may_unpack(now, message)) return false;
  const ProgramFragment& fragment = program.fragments[message.fragment];
  const bool last = fragment.first + message.chunk + 1 == fragment.last;
  return program.receivers[message.end].has(last ? detail::whole : message.chunk + 1);
}

inline bool Plan::Impl::next_has_arrived(const ProgramRound& now) const {
  const ProgramOrdered& next = now.ordered[now.next];
  if (next.message == ProgramOrdered::inside) return true;
  const ProgramMessage& message = now.in[next.message];
  return message.fragment >= message.in_order && program.receivers[message.end].has(next.arrived);
}

std::string Plan::Impl::in_this_round() const {
  return program.rounds.size() == 1 ? "" : " in round " + std::to_string(round) + " of a plan";
}

// A message that has arrived but may not be unpacked yet does not wait for its sender, which may have left in order: it
// waits for a slot of its dependency, or in lockstep for another message.
template <class Visit>
[[gnu::always_inline]] inline void Plan::Impl::for_each_movable(ProgramRound& now, const Visit& visit) {
  const auto channel = [&](int from, int to) {
    return "channel " + std::to_string(from) + " -> " + std::to_string(to) + in_this_round();
  };
  const auto sender_of = [&](const ProgramMessage& message) {
    const int peer = program.receivers[message.end].peer();
    return WaitingFor{peer, channel(peer, group->rank)};
  };
  const auto receiver_of = [&](const ProgramMessage& message) {
    const int peer = program.senders[message.end].peer();
    return WaitingFor{peer, channel(group->rank, peer)};
  };
  const auto next_arrived = [&](const ProgramMessage& message) {
    return program.receivers[message.end].has(message.chunk + 1);
  };
  if (now.lockstep && open_messages != 0) {
    // Waiting for the last of the messages cannot deadlock: no rank's packing waits for its own unpacking, and the rank
    // that is furthest behind in unpacking has free slots at all its peers.
    visit([&] { return std::ranges::all_of(now.in, [&](const auto& message) { return has_arrived(now, message); }); },
          [&] {
            for (ProgramMessage& message : now.in) receive_chunk(message);
            return true;
          },
          [&] {
            const auto found = std::ranges::find_if(now.in, [&](const ProgramMessage& message) {
              return message.fragment != message.last && !next_arrived(message);
            });
            return found == now.in.end() ? WaitingFor{} : sender_of(*found);
          });
    visit([&] { return std::ranges::any_of(now.out, [&](const auto& message) { return can_send(message); }); },
          [&] { return send_lockstep(now); },
          [&] {
            const auto found = std::ranges::find_if(
                now.out, [](const ProgramMessage& message) { return message.fragment != message.last; });
            return found == now.out.end() ? WaitingFor{} : receiver_of(*found);
          });
  }
  for (ProgramMessage& message : now.in) {
    if (now.lockstep || message.fragment >= message.in_order) continue;
    visit([&] { return has_arrived(now, message); },
          [&] {
            receive_chunk(message);
            return true;
          },
          [&] { return may_unpack(now, message) || !next_arrived(message) ? sender_of(message) : WaitingFor{}; });
  }
  if (now.next != now.ordered.size()) {
    // A sender packs these messages without waiting for anything but slots, and all parts of its message before the
    // next one have been released. So the next part arrives.
    visit([&] { return now.next != now.ordered.size() && next_has_arrived(now); },
          [&] {
            receive_next(now);
            return true;
          },
          [&] {
            const std::uint32_t next = now.ordered[now.next].message;
            return next == ProgramOrdered::inside ? WaitingFor{} : sender_of(now.in[next]);
          });
  }
  for (ProgramMessage& message : now.out) {
    if (now.lockstep || message.fragment == message.last) continue;
    visit([&] { return can_send(message); }, [&] { return send_chunk(message); }, [&] { return receiver_of(message); });
  }
  if (now.direct.complete()) return;
  visit([&] { return now.direct.anything_to_do(program.signals); }, [&] { return now.direct.move(program.signals); },
        [&] {
          const int peer = now.direct.waits_for(program.signals);
          if (peer < 0) return WaitingFor{};
          return WaitingFor{peer, "an exchange in place with rank " + std::to_string(peer) + in_this_round()};
        });
}

bool Plan::Impl::move() {
  deferring = false;
  bool moved = false;
  for_each_movable(program.rounds[round], [&](const auto& ready, const auto& step, const auto&) {
    while (ready() && step()) moved = true;
  });
  if (deferring && !moved) [[unlikely]]
    return stop_deferring();
  return moved;
}

bool Plan::Impl::anything_to_do() {
  bool found = false;
  for_each_movable(program.rounds[round],
                   [&](const auto& ready, const auto&, const auto&) { found = found || ready(); });
  return found;
}

WaitingFor Plan::Impl::waiting_for() {
  WaitingFor found;
  for_each_movable(program.rounds[round], [&](const auto&, const auto&, const auto& waits_for) {
    if (found.peer < 0) found = waits_for();
  });
  return found;
}

void Plan::Impl::progress() {
  ProgramRound& now = program.rounds[round];
  for (const ProgramMessage& message : now.out) program.senders[message.end].progress();
  for (const ProgramMessage& message : now.in) {
    if (message.fragment != message.last) program.receivers[message.end].progress();
  }
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
  while (now.lockstep && send_lockstep(now)) {
  }
  if (!now.lockstep) {
    for (ProgramMessage& message : now.out) {
      while (can_send(message) && send_chunk(message)) {
      }
    }
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

}  // namespace onehop
