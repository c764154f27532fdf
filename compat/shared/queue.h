// All messages from one rank of a mailbox to another. They pass through three queues: channels whose slots suit
// different messages. A slot holds several messages, or part of a long one. Slots are numbered across the three queues
// and are received in the order of their numbers.
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

namespace onehop::compat {

constexpr std::size_t queues = 3;

enum class Queue : std::size_t {
  line,  // a slot is one cache line that includes its flag: for a short message by itself
  main,  // two large slots that stay in the caches because they are used alternately; received chunk by chunk
  deep   // many small slots, for messages that are sent while the receiver is busy with something else
};

// The channel specifications of a mailbox's queues. The number of ranks determines the depth of the deep queues, which
// share a memory budget.
class QueueShapes {
 public:
  QueueShapes(int ranks, std::int64_t chunk_bytes);
  // Appends the specifications for one peer: all queues to it, then all queues from it, in the order of Queue.
  void add(int peer, std::vector<ChannelSpec>& specs) const;

 private:
  std::array<ChannelSpec, queues> shapes_;
};

class Outgoing {
 public:
  void open(std::span<Sender> senders);

  // Messages are written in the order of these calls, as far as slots are free. A message that may not wait closes its
  // slot; others leave the slot open for the next message, until close().
  void send(Message& message, bool may_wait);
  // Writes what it can, and returns whether it wrote anything.
  bool push();
  [[nodiscard]] bool can_push() { return !pending_.empty() && free_queue(pending_.front(), false) != nullptr; }
  void close();
  [[nodiscard]] bool is_open() const noexcept { return slot_ != nullptr; }
  void progress();

 private:
  bool push(bool may_wait);
  bool write(Message& message, bool may_wait);
  void write_part(Message& message, std::size_t bytes);
  void write_header(std::uint32_t tag, std::size_t bytes);
  Sender* free_queue(const Message& message, bool may_wait);
  [[nodiscard]] std::size_t room() const noexcept { return static_cast<std::size_t>(slot_->bytes()) - used_; }

  std::array<Sender, queues> queues_;
  MessageList pending_;
  Sender* slot_ = nullptr;  // the queue whose current slot is being filled
  std::size_t used_ = 0;    // of that slot
  std::size_t chunks_ = 0;  // of it, published
  std::uint32_t slots_ = 0;
};

class Incoming {
 public:
  void open(int from, int to, std::span<Receiver> receivers);

  // Receives the first message with this tag that has arrived unasked, or else the next one to arrive.
  void receive(Message& message);
  // Delivers a message that this rank sends to itself.
  void deliver(Message& sent);
  // Reads what has arrived, and returns whether there was anything. Throws Mismatch if a message is longer than the
  // memory that it is received into, or shorter where it must be exact.
  bool pull();
  [[nodiscard]] bool can_pull();
  void progress();

 private:
  // A message that has arrived, at least in part, before the program has asked for it.
  struct Aside {
    std::uint32_t tag = 0;
    std::vector<std::byte> bytes;
    std::size_t arrived = 0;
  };

  Receiver* next_queue();
  bool pull_slot(Receiver& queue);
  void begin(std::uint32_t tag, std::size_t bytes);
  void arrive(std::span<const std::byte> part);
  [[nodiscard]] std::size_t missing() const noexcept;
  void check_length(const Message& message, std::size_t bytes) const;

  int from_ = 0;
  int to_ = 0;
  std::array<Receiver, queues> queues_;
  MessageList wanted_;
  std::list<Aside> aside_;
  // The message that is arriving is one of these two; both are null between messages.
  Message* into_ = nullptr;
  Aside* into_aside_ = nullptr;
  Receiver* slot_ = nullptr;  // the queue whose current slot is being read
  std::size_t at_ = 0;        // in that slot
  std::uint64_t chunks_ = 0;  // of it, seen
  std::uint32_t slots_ = 0;
};

}  // namespace onehop::compat
