#include "compat/shared/mailbox.h"

#include <string>
#include <utility>

#include "onehop/error.h"
#include "onehop/wait.h"
#include "src/base/cpu.h"

namespace onehop::compat {
namespace {

constexpr int busy_polls = 100;  // failed polls before idle() waits and may sleep

}  // namespace

Mailbox::Mailbox(const Group& group, std::int64_t chunk_bytes)
    : group_(group),
      forks_(detail::forks.load(std::memory_order_relaxed)),
      rank_(group.rank()),
      size_(group.size()),
      peers_(static_cast<std::size_t>(group.size())) {
  const QueueShapes shapes(size_, chunk_bytes);
  std::vector<ChannelSpec> specs;
  for (int other = 0; other < size_; ++other) {
    if (other != rank_) shapes.add(other, specs);
  }
  Channels channels = open_channels(group_, specs);
  for (const Sender& sender : channels.senders) polls_ |= sender.needs_progress();
  for (const Receiver& receiver : channels.receivers) polls_ |= receiver.needs_progress();
  std::size_t next = 0;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    at(other).outgoing.open(std::span(channels.senders).subspan(next, queues));
    at(other).incoming.open(other, rank_, std::span(channels.receivers).subspan(next, queues));
    next += queues;
  }
}

void Mailbox::send(Message& message, Slot slot) {
  check_process(forks_);
  message.begin();
  if (message.peer == rank_) {
    at(rank_).incoming.deliver(message);
    return;
  }
  Outgoing& outgoing = at(message.peer).outgoing;
  outgoing.send(message, slot == Slot::hold);
  open_slots_ |= outgoing.is_open();
}

void Mailbox::receive(Message& message) {
  check_process(forks_);
  message.begin();
  at(message.peer).incoming.receive(message);
}

void Mailbox::flush() {
  if (!std::exchange(open_slots_, false)) return;
  for (Peer& peer : peers_) peer.outgoing.close();
}

Mailbox::Peer& Mailbox::polled(int other) {
  Peer& peer = at(other);
  if (polls_) {
    peer.incoming.progress();
    peer.outgoing.progress();
  }
  return peer;
}

bool Mailbox::progress() {
  check_process(forks_);
  flush();
  bool moved = false;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    Peer& peer = polled(other);
    moved |= peer.incoming.pull();
    moved |= peer.outgoing.push();
  }
  return moved;
}

// Returns whether progress() would move anything.
bool Mailbox::can_move() {
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    Peer& peer = polled(other);
    if (peer.incoming.can_pull() || peer.outgoing.can_push()) return true;
  }
  return false;
}

// Called after a poll that moved nothing.
void Mailbox::idle(int& failed_polls, int peer) {
  if (peer == rank_) {
    throw BadInput("rank " + std::to_string(rank_) + " waits for a message from itself that it has not sent");
  }
  if (++failed_polls < busy_polls) return cpu::pause();
  wait_until(group_, {.peer = peer, .what = "an exchange of messages", .polls = polls_}, [this] { return can_move(); });
}

}  // namespace onehop::compat
