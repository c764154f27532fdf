// `Messages` are messages of any length between two ranks, with tags, over channels that are opened once. No thread
// works for them: messages move while their ranks are in a function of this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "onehop/group.h"

namespace onehop::collectives {

namespace detail {
struct MessagePaths;
struct Outgoing;
}  // namespace detail

// A message that `isend` has begun to send.
class SendRequest {
 public:
  // Whether the memory of the message may be overwritten. Throws PeerLost.
  [[nodiscard]] bool test();
  // Waits until it may. Throws PeerLost and Timeout.
  void wait();

 private:
  friend class Messages;
  std::shared_ptr<detail::MessagePaths> paths_;
  std::shared_ptr<detail::Outgoing> message_;
};

// Only one thread at a time may use it. Messages between two ranks with the same tag arrive in the order in which they
// were sent. A message that no `receive` has asked for is kept. `send` may wait for the `receive` of a message of more
// than 1000 bytes, and so may all later ones to that rank.
class Messages {
 public:
  static constexpr int any_rank = -1;

  // Collective over the group.
  explicit Messages(const Group& group);

  // All of these throw BadInput for a rank outside the group or a negative tag, PeerLost and Timeout,
  // after which no other message can be sent or received.

  // Begins to send, and returns at once. Do not change the message until the request is done.
  [[nodiscard]] SendRequest isend(std::span<const std::byte> message, int to, std::int64_t tag = 0);
  // Returns when the message may be overwritten.
  void send(std::span<const std::byte> message, int to, std::int64_t tag = 0) { isend(message, to, tag).wait(); }
  // Waits for the next message with this tag from rank `source`, or from any other rank, and returns the rank that sent
  // it. Throws Mismatch, and drops the message, if it has another length.
  int receive(std::span<std::byte> message, int source = any_rank, std::int64_t tag = 0);

 private:
  std::shared_ptr<detail::MessagePaths> paths_;
};

}  // namespace onehop::collectives
