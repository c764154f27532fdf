// All messages from one rank of a post to another, through three channels with slots for different needs. A slot takes several
// messages, or part of a long one. Slots are numbered over all lanes, and received in the order of their numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "compat/shared/message.h"
#include "onehop/channel.h"

namespace onehop::door {

constexpr std::size_t lanes = 3;

enum class Lane : std::size_t {
  line,  // a slot is one cache line with its colour in it: for a short message by itself
  main,  // two large slots, used again and again, so that they stay in the caches; their chunks are received one by one
  deep   // many small ones, for what is sent while the receiver is busy with something else
};

// How the lanes of a post are made: as many ranks share the memory.
class LaneShapes {
 public:
  LaneShapes(int ranks, std::int64_t chunk_bytes);
  // Both directions, in the order of lanes.
  void add(int peer, std::vector<ChannelSpec>& specs) const;

 private:
  std::array<ChannelSpec, lanes> shapes_;
};

class Outgoing {
 public:
  void open(std::span<Sender> senders);

  // Messages leave in the order in which they come here, as far as slots are free. A message that may not wait closes its slot;
  // others leave it open for the next, until close().
  void send(Message& message, bool may_wait);
  // Whether anything moved.
  bool push();
  [[nodiscard]] bool can_push() { return !queue_.empty() && free_lane(queue_.front(), false) != nullptr; }
  void close();
  [[nodiscard]] bool is_open() const noexcept { return slot_ != nullptr; }
  void progress();

 private:
  bool push(bool may_wait);
  bool write(Message& message, bool may_wait);
  void write_part(Message& message, std::size_t bytes);
  void write_header(std::uint32_t tag, std::size_t bytes);
  Sender* free_lane(const Message& message, bool may_wait);
  [[nodiscard]] std::size_t room() const noexcept { return static_cast<std::size_t>(slot_->bytes()) - used_; }

  std::array<Sender, lanes> lanes_;
  Queue queue_;
  Sender* slot_ = nullptr;  // the lane whose current slot is being filled
  std::size_t used_ = 0;    // of that slot
  std::size_t chunks_ = 0;  // of it, published
  std::uint32_t slots_ = 0;
};

class Incoming {
 public:
  void open(int from, int to, std::span<Receiver> receivers);

  // The first message of the tag that has come, or will come, goes to this one.
  void receive(Message& message);
  // What this rank sends to itself.
  void deliver(Message& sent);
  // Whether anything moved. Throws Mismatch where a message is longer than what it is received into.
  bool pull();
  [[nodiscard]] bool can_pull();
  void progress();

 private:
  // What has come, or is coming, without having been asked for.
  struct Aside {
    std::uint32_t tag = 0;
    std::vector<std::byte> bytes;
    std::size_t arrived = 0;
  };

  Receiver* next_lane();
  bool pull_slot(Receiver& lane);
  void begin(std::uint32_t tag, std::size_t bytes);
  void arrive(std::span<const std::byte> part);
  [[nodiscard]] std::size_t missing() const noexcept;
  void check_length(const Message& message, std::size_t bytes) const;

  int from_ = 0;
  int to_ = 0;
  std::array<Receiver, lanes> lanes_;
  Queue wanted_;
  std::list<Aside> aside_;
  // The message that is arriving: one of these, or neither between two messages.
  Message* into_ = nullptr;
  Aside* into_aside_ = nullptr;
  Receiver* slot_ = nullptr;  // the lane whose current slot is being read
  std::size_t at_ = 0;        // in that slot
  std::uint64_t chunks_ = 0;  // of it, seen
  std::uint32_t slots_ = 0;
};

}  // namespace onehop::door
