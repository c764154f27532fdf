// Messages between all ranks, for drop-in interfaces that have no call for opening a channel: any rank may send to any
// other one without preparing it together. Every ordered pair of ranks has the queues of queue.h. A pair's messages
// pass through them in the order in which they were started, and messages with the same tag are received in that order.
// Messages that arrive before the program has asked for them are put aside.
//
// A mailbox may be used by one thread at a time, and not by a forked child: it throws Error there.
#pragma once

#include <cstdint>
#include <vector>

#include "compat/shared/memory.h"
#include "compat/shared/message.h"
#include "compat/shared/queue.h"
#include "onehop/group.h"

namespace onehop::compat {

class Mailbox {
 public:
  // Long messages pass in chunks. With small chunks the receiver copies the beginning of a message while its end is
  // being written; large chunks are faster for messages that are much longer. Collective over the group.
  explicit Mailbox(const Group& group, std::int64_t chunk_bytes = 8 << 10);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const Group& group() const noexcept { return group_; }

  // What send() does with a slot that a short message leaves partly empty.
  enum class Slot {
    close,  // publish it at once
    hold    // keep it open for further messages to the same rank, until flush(), progress() or wait()
  };

  // Start a message and return without waiting. Throw BadInput if the message is under way already.
  void send(Message& message, Slot slot = Slot::close);
  void receive(Message& message);
  void flush();

  // Moves as much data as it can, and returns whether it moved any. Throws Mismatch if a message is longer than the
  // memory that it is received into.
  bool progress();
  // Waits until awaited() returns a negative number. Until then awaited() returns the rank that it waits for. Throws
  // PeerLost, Timeout, everything that progress() throws, and BadInput if this rank waits for itself.
  template <class Awaited>
  void wait(Awaited awaited) {
    check_process(forks_);
    flush();
    int failed_polls = 0;
    for (int peer = awaited(); peer >= 0; peer = awaited()) {
      if (progress()) {
        failed_polls = 0;
      } else {
        idle(failed_polls, peer);
      }
    }
  }
  void wait(const Message& message) {
    wait([&message] { return message.active_ ? message.peer : -1; });
  }

 private:
  struct Peer {
    Outgoing outgoing;
    Incoming incoming;
  };

  Peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  Peer& polled(int other);  // the peer, after progress() on its channels
  bool can_move();
  void idle(int& failed_polls, int peer);

  Group group_;
  std::uint32_t forks_;  // when the ranks met
  int rank_ = 0;
  int size_ = 1;
  bool polls_ = false;       // whether any channel needs progress()
  bool open_slots_ = false;  // whether any slot is held open
  std::vector<Peer> peers_;
};

}  // namespace onehop::compat
