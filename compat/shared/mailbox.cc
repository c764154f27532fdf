#include "compat/shared/mailbox.h"

#include <string>
#include <utility>

#include "onehop/error.h"
#include "onehop/wait.h"

namespace onehop::door {
namespace {

constexpr int busy_looks = 100;  // before waiting in earnest

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Post::Post(const Group& group, std::int64_t chunk_bytes)
    : group_(group), rank_(group.rank()), size_(group.size()), peers_(static_cast<std::size_t>(group.size())) {
  const LaneShapes shapes(size_, chunk_bytes);
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
    at(other).outgoing.open(std::span(channels.senders).subspan(next, lanes));
    at(other).incoming.open(other, rank_, std::span(channels.receivers).subspan(next, lanes));
    next += lanes;
  }
}

void Post::send(Message& message, Slot slot) {
  message.begin();
  if (message.peer == rank_) {
    at(rank_).incoming.deliver(message);
    return;
  }
  Outgoing& outgoing = at(message.peer).outgoing;
  outgoing.send(message, slot == Slot::hold);
  open_slots_ |= outgoing.is_open();
}

void Post::receive(Message& message) {
  message.begin();
  at(message.peer).incoming.receive(message);
}

void Post::flush() {
  if (!std::exchange(open_slots_, false)) return;
  for (Peer& peer : peers_) peer.outgoing.close();
}

Post::Peer& Post::polled(int other) {
  Peer& peer = at(other);
  if (polls_) {
    peer.incoming.progress();
    peer.outgoing.progress();
  }
  return peer;
}

bool Post::progress() {
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

// Whether progress() would do anything.
bool Post::can_move() {
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    Peer& peer = polled(other);
    if (peer.incoming.can_pull() || peer.outgoing.can_push()) return true;
  }
  return false;
}

// Nothing moved.
void Post::idle(int& looks, int peer) {
  if (peer == rank_) {
    throw BadInput("rank " + std::to_string(rank_) + " waits for a message from itself that it has not sent");
  }
  if (++looks < busy_looks) return pause();
  wait_until(group_, {.peer = peer, .what = "an exchange of messages", .polls = polls_}, [this] { return can_move(); });
}

}  // namespace onehop::door
