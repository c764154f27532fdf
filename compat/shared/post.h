// Messages between all ranks for doors whose interfaces open no channels: any rank may send to any other, without preparing it
// together. Every ordered pair of ranks has one channel of small slots, through which the pair's messages pass in the order in
// which they were started. Messages of a tag are received in that order; messages that nobody has asked for yet are put aside.
//
// For one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <span>
#include <vector>

#include "onehop/channel.h"
#include "onehop/group.h"

namespace onehop::door {

// Where a message lies: blocks of bytes at distances from a base that may change.
struct Layout {
  struct Block {
    std::ptrdiff_t at = 0;
    std::size_t bytes = 0;
  };
  std::vector<Block> blocks;
  std::size_t bytes = 0;

  Layout() = default;
  explicit Layout(std::size_t length) { add(0, length); }
  void add(std::ptrdiff_t at, std::size_t length);
};

// Goes through a message once, block by block.
class Cursor {
 public:
  Cursor() = default;
  Cursor(const Layout& layout, std::byte* base) : layout_(&layout), base_(base) {}
  void read(std::span<std::byte> to, StoreKind stores);
  void write(std::span<const std::byte> from, StoreKind stores);

 private:
  template <class Visit>
  void walk(std::size_t bytes, Visit visit);

  const Layout* layout_ = nullptr;
  std::byte* base_ = nullptr;
  std::size_t block_ = 0;
  std::size_t within_ = 0;
};

// One message that is sent or received, as often as one likes. It stays where it is, with its layout, while it is under way.
struct Message {
  int peer = 0;
  std::uint32_t tag = 0;
  const Layout* layout = nullptr;
  std::byte* base = nullptr;

  [[nodiscard]] bool active() const noexcept { return active_; }

 private:
  friend class Post;
  Cursor cursor_;
  std::size_t left_ = 0;
  bool active_ = false;
  bool begun_ = false;
};

class Post {
 public:
  // Messages pass in pieces of a slot. With small ones the receiver copies the beginning of a message while its end is written;
  // large ones are faster where messages are much longer. Collective over the group.
  explicit Post(const Group& group, std::int64_t slot_bytes = 8 << 10);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const Group& group() const noexcept { return group_; }

  // Never wait. BadInput if the message is under way.
  void send(Message& message);
  void receive(Message& message);

  // Moves what can be moved; whether anything was. Throws Mismatch where a message is longer than what it is received into.
  bool progress();
  // Until awaited() is negative; before, it is the rank that is waited for. Throws PeerLost, Timeout, what progress() throws, and
  // BadInput if this rank waits for itself.
  template <class Awaited>
  void wait(Awaited awaited) {
    Patience patience;
    for (int peer = awaited(); peer >= 0; peer = awaited()) {
      if (progress()) {
        patience = {};
      } else {
        idle(patience, peer);
      }
    }
  }
  void wait(const Message& message) {
    wait([&message] { return message.active_ ? message.peer : -1; });
  }

 private:
  // What has come, or is coming, without having been asked for.
  struct Aside {
    std::uint32_t tag = 0;
    std::vector<std::byte> bytes;
    std::size_t arrived = 0;
  };
  struct Peer {
    Sender sender;
    Receiver receiver;
    std::deque<Message*> outgoing;
    std::list<Message*> wanted;
    std::list<Aside> aside;
    // The message that is arriving: one of these, or neither between two messages.
    Message* into = nullptr;
    Aside* into_aside = nullptr;
  };

  struct Patience {
    int looks = 0;
    double asleep = 0;  // seconds
  };

  Peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  bool push(Peer& peer);
  bool pull(int number, Peer& peer);
  void begin_arrival(int number, Peer& peer, std::uint32_t tag, std::size_t bytes);
  void arrive(Peer& peer, std::span<const std::byte> part);
  void deliver_here(Message& message);
  void idle(Patience& patience, int peer);
  void check_length(int from, const Message& message, std::size_t bytes) const;

  Group group_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<Peer> peers_;
};

// Collective operations over some ranks of a post, of which this rank is number `me`. Every operation is one message from
// everybody to everybody; results are made in the order of ranks and are the same on all.
class Circle {
 public:
  // The tag is of nobody else.
  Circle(Post& post, std::vector<int> ranks, int me, std::uint32_t tag);

  [[nodiscard]] int me() const noexcept { return me_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }

  // What everybody gave, `mine.size()` bytes each, in the order of ranks; valid until the next operation.
  std::span<const std::byte> gather(std::span<const std::byte> mine);
  // The i-th part of `parts` goes to rank i, whose part for this rank comes to the same place in the result.
  std::span<const std::byte> exchange(std::span<const std::byte> parts);
  void broadcast(std::span<std::byte> bytes, int root);
  void barrier() { gather({}); }

 private:
  std::span<const std::byte> all_to_all(const std::byte* first, std::size_t stride, std::size_t bytes);
  void wait(std::vector<Message>& messages);

  Post& post_;
  std::vector<int> ranks_;
  int me_;
  Layout layout_;
  std::vector<Message> out_;
  std::vector<Message> in_;
  std::vector<std::byte> result_;
};

}  // namespace onehop::door
