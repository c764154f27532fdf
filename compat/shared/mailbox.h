// Messages between all ranks for doors whose interfaces open no channels: any rank may send to any other, without preparing it
// together. Every ordered pair of ranks has the channels of lanes.h, through which the pair's messages pass in the order in
// which they were started. Messages of a tag are received in that order; messages that nobody has asked for yet are put aside.
//
// For one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "compat/shared/message.h"
#include "compat/shared/queue.h"
#include "onehop/group.h"

namespace onehop::door {

class Post {
 public:
  // Long messages pass in chunks. With small ones the receiver copies the beginning of a message while its end is written; large
  // ones are faster where messages are much longer. Collective over the group.
  explicit Post(const Group& group, std::int64_t chunk_bytes = 8 << 10);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const Group& group() const noexcept { return group_; }

  // What a sender does with the slot that a short message has begun.
  enum class Slot {
    close,  // it goes on its way at once
    hold    // it may wait for further messages to the same rank, until flush() or anything that moves messages or waits
  };

  // Never wait. BadInput if the message is under way.
  void send(Message& message, Slot slot = Slot::close);
  void receive(Message& message);
  void flush();

  // Moves what can be moved; whether anything was. Throws Mismatch where a message is longer than what it is received into.
  bool progress();
  // Until awaited() is negative; before, it is the rank that is waited for. Throws PeerLost, Timeout, what progress() throws, and
  // BadInput if this rank waits for itself.
  template <class Awaited>
  void wait(Awaited awaited) {
    flush();
    int looks = 0;
    for (int peer = awaited(); peer >= 0; peer = awaited()) {
      if (progress()) {
        looks = 0;
      } else {
        idle(looks, peer);
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
  Peer& polled(int other);  // a peer, its channels seen to
  bool can_move();
  void idle(int& looks, int peer);

  Group group_;
  int rank_ = 0;
  int size_ = 1;
  bool polls_ = false;       // some channel needs progress()
  bool open_slots_ = false;  // some slot is held open
  std::vector<Peer> peers_;
};

}  // namespace onehop::door
