// Operations whose blocks are passed on by other ranks than their owners (forwarding.h).
#include "collectives/exchange.h"
#include "collectives/forwarding.h"
#include "onehop/wait.h"
#include "src/channel/store.h"

namespace onehop::collectives::detail {

using onehop::detail::whole;

namespace {
constexpr std::array<std::size_t, 2> both_phases{0, 1};
}

bool Exchange::may_pass_out(Peer& peer, std::size_t phase) {
  const auto& hops = running->forwarding->with[index(peer.rank)].out[phase];
  if (peer.passed_out[phase] == hops.size()) return false;
  const Hop& hop = hops[peer.passed_out[phase]];
  if (hop.from >= 0 && peers_[index(hop.from < rank ? hop.from : hop.from - 1)].passed_in[hop.phase] < hop.after) {
    return false;
  }
  return (phase == 0 ? peer.reduce_out : peer.gather_out).ready();
}

bool Exchange::may_pass_in(Peer& peer, std::size_t phase) const {
  return peer.passed_in[phase] < running->forwarding->with[index(peer.rank)].in[phase].size() &&
         (phase == 0 ? peer.reduce_in : peer.gather_in).ready();
}

void Exchange::pass_out(Peer& peer, std::size_t phase) {
  const Hop& hop = running->forwarding->with[index(peer.rank)].out[phase][peer.passed_out[phase]++];
  const std::int64_t own = running->in_place_at_result;
  const std::byte* const from =
      hop.from < 0 ? arrays.source({hop.range.first - own, hop.range.last - own}) : arrays.result(hop.range);
  Sender& to = phase == 0 ? peer.reduce_out : peer.gather_out;
  store_bytes(stores_, to.slot().data(), {from, index(hop.range.elements())});
  to.publish(whole, hop.range.elements());
  to.advance();
  counters.bytes_sent += hop.range.elements();
}

void Exchange::pass_in(Peer& peer, std::size_t phase) {
  const Hop& hop = running->forwarding->with[index(peer.rank)].in[phase][peer.passed_in[phase]++];
  Receiver& from = phase == 0 ? peer.reduce_in : peer.gather_in;
  const std::byte* const data = from.wait().data();
  store_bytes(StoreKind::plain, arrays.result(hop.range), {data, index(hop.range.elements())});
  from.release();
  counters.bytes_received += hop.range.elements();
}

void Exchange::start_forwarded() {
  back_staging();
  send_headers();
  for (Peer& peer : peers_) peer.passed_out = peer.passed_in = {};
  if (!all_backed_) return;
  for (Peer& peer : peers_) {
    for (; may_pass_out(peer, 0); ++peer.contributed) pass_out(peer, 0);
  }
}

// The rank for which this one waits first; -1: everything has moved.
int Exchange::forwarding_peer() const {
  for (const Peer& peer : peers_) {
    const Forwarding::Paths& paths = running->forwarding->with[index(peer.rank)];
    for (const std::size_t phase : both_phases) {
      if (peer.passed_in[phase] < paths.in[phase].size()) return peer.rank;
    }
  }
  for (const Peer& peer : peers_) {
    const Forwarding::Paths& paths = running->forwarding->with[index(peer.rank)];
    for (const std::size_t phase : both_phases) {
      if (peer.passed_out[phase] < paths.out[phase].size()) return peer.rank;
    }
  }
  return -1;
}

void Exchange::finish_forwarded() {
  check_headers();
  const auto can_move = [this] {
    for (Peer& peer : peers_) {
      for (Receiver* end : {&peer.reduce_in, &peer.gather_in}) {
        if (end->needs_progress()) end->progress();
      }
      for (Sender* end : {&peer.reduce_out, &peer.gather_out}) {
        if (end->needs_progress()) end->progress();
      }
      for (const std::size_t phase : both_phases) {
        if (may_pass_in(peer, phase) || may_pass_out(peer, phase)) return true;
      }
    }
    return false;
  };
  bool polls = false;
  for (const Peer& peer : peers_) polls |= peer.reduce_in.needs_progress();
  for (int waits_for = forwarding_peer(); waits_for >= 0; waits_for = forwarding_peer()) {
    wait_until(group, {waits_for, "a collective", polls}, can_move);
    for (Peer& peer : peers_) {
      for (const std::size_t phase : both_phases) {
        while (may_pass_in(peer, phase)) pass_in(peer, phase);
      }
    }
    for (Peer& peer : peers_) {
      for (const std::size_t phase : both_phases) {
        while (may_pass_out(peer, phase)) pass_out(peer, phase);
      }
    }
  }
  copy_own();
}

}  // namespace onehop::collectives::detail
