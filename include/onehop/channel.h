// A channel is a prepared one-way path between two ranks. The sender writes a message into a slot and then stores the
// slot's flag; the receiver polls the flag. A flag holds the sequence number of the message, so it only grows and never
// has to be cleared. (QuickReduce calls this a coloured flag.) The receiver returns slots to the sender through a
// second number, `released`. The protocol is described in docs/design/protocol.md. Its fast path is in
// detail/channel_core.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/detail/channel_core.h"
#include "onehop/group.h"

namespace onehop {

// How a sender writes into a slot. The best kind depends on the machine and on the message size: see tuning.h.
enum class StoreKind : std::uint8_t {
  plain,        // ordinary stores
  prefetch,     // ordinary stores, lines fetched for writing 1 KiB ahead
  demote,       // ordinary stores, each line pushed out of the core's own cache at once (cldemote)
  nontemporal,  // stores that bypass the caches
};

// One end of a channel, as a rank requests it. Both ends must be requested in the same call of `open_channels`.
struct ChannelSpec {
  enum class Direction : std::uint8_t { send, receive };
  Direction direction = Direction::send;
  int peer = 0;            // the rank at the other end; may be this rank
  std::int64_t bytes = 0;  // length of one message; 0 makes a bare signal
  int tag = 0;             // distinguishes channels between the same two ranks
  // The sender's values apply; 0 lets onehop choose. A message longer than a slot is cut into fragments, which pass
  // through the slots one after the other. The staging memory is always slots * slot_bytes.
  int slots = 0;
  std::int64_t slot_bytes = 0;
  std::int64_t chunk_bytes = 0;  // the flag is stored after each chunk of a fragment
  std::uint64_t signature = 0;   // identifies the meaning of the messages; must be equal on both ends
};

enum class TransportKind : std::uint8_t {
  automatic,  // shared memory between ranks of one machine, else MPI, or UCX if the group was made without MPI
  shared_memory,
  mpi,
  ucx,
  mock,  // moves nothing and never waits; isolates the cost of packing in benchmarks
};

[[nodiscard]] TransportKind transport_from_string(std::string_view name);
[[nodiscard]] std::string_view to_string(TransportKind kind);

// The sending end. Only one thread at a time may use it; different threads may use different channels.
class Sender : public detail::SenderCore {
 public:
  Sender() = default;
  using SenderCore::SenderCore;

  // Bytes of one message; whether a message fits in one slot (then slot() may be used); the rank at the other end.
  [[nodiscard]] std::int64_t bytes() const noexcept { return SenderCore::bytes(); }
  [[nodiscard]] bool in_place() const noexcept { return SenderCore::in_place(); }
  [[nodiscard]] int peer() const noexcept { return SenderCore::peer(); }

  // Whether the next slot can be written without waiting.
  [[nodiscard]] bool ready() noexcept { return SenderCore::ready(); }

  // Returns the memory of the next message, after waiting until it may be written. Write the message there, then call
  // put(). Throws BadInput unless `in_place()`, PeerLost, Timeout.
  [[nodiscard]] std::span<std::byte> slot() {
    if (!ready()) [[unlikely]]
      wait_released();
    if (!in_place()) [[unlikely]]
      throw_not_in_place();
    return {at_ + ring_.payload, static_cast<std::size_t>(ring_.message_bytes)};
  }

  // Publishes the message that was written into slot().
  void put() {
    publish(detail::whole, ring_.message_bytes);
    advance();
  }

  // Copies a message into the channel and publishes it chunk by chunk. Waits for free slots.
  // Throws BadInput unless message.size() == bytes(), PeerLost, Timeout.
  void put(std::span<const std::byte> message) {
    if (message.size() != simple_bytes_) [[unlikely]] {
      put_in_chunks(message);
      return;
    }
    if (!ready()) [[unlikely]]
      wait_released();
    detail::copy_bytes(at_ + ring_.payload, message.data(), message.size());
    put();
  }

  // Lets the caller write a message of any length directly into the slots, in parts that are published one by one.
  // fill(part, offset) must write all of `part`, a span of bytes that starts at byte `offset` of the message. Throws
  // PeerLost, Timeout, and whatever `fill` throws.
  template <class Fill>
  void write(Fill&& fill);

  // A put() or write() that throws before it published any part of its message may be called again. If it throws later,
  // the end is poisoned, because the start of the next message is no longer known: every further use throws Error with
  // the first error's text.

  // Moves whatever can be moved without waiting. A program that polls channels instead of waiting must call it between
  // polls on each of its channels whose needs_progress() is true.
  void progress() { SenderCore::progress(); }
  [[nodiscard]] bool needs_progress() const { return SenderCore::needs_progress(); }

 private:
  void put_in_chunks(std::span<const std::byte> message);
};

// The receiving end.
class Receiver : public detail::ReceiverCore {
 public:
  Receiver() = default;
  using ReceiverCore::ReceiverCore;

  // As in Sender.
  [[nodiscard]] std::int64_t bytes() const noexcept { return ReceiverCore::bytes(); }
  [[nodiscard]] bool in_place() const noexcept { return ReceiverCore::in_place(); }
  [[nodiscard]] int peer() const noexcept { return ReceiverCore::peer(); }

  // Whether the next fragment (the next message, if `in_place()`) has arrived completely.
  [[nodiscard]] bool ready() const noexcept { return ReceiverCore::ready(); }

  // Waits for the next message and returns the slot that holds it. The message stays valid until release(). Throws
  // BadInput unless `in_place()`, PeerLost, Timeout.
  [[nodiscard]] std::span<const std::byte> wait() {
    if (!ready()) wait_arrived(detail::flag_value(use_ + 1, detail::whole));
    if (!simple_) [[unlikely]]
      begin_reading();
    return {at_ + ring_.payload, static_cast<std::size_t>(ring_.message_bytes)};
  }

  // Returns the slot to the sender.
  void release() { ReceiverCore::release(); }

  // Waits for the next message, copies it to `message` chunk by chunk as it arrives, and releases its slots.
  // Throws BadInput unless message.size() == bytes(), PeerLost, Timeout.
  void get(std::span<std::byte> message);

  // Waits for the next message, of any length, and calls visit(part, offset) for each part as it arrives, without a
  // copy. A part must not be used after `visit` has returned. Throws PeerLost, Timeout, and whatever `visit` throws.
  template <class Visit>
  void read(Visit&& visit);

  // A get() or read() that throws before it released a slot may be called again, and starts again with the same
  // message. If it throws later, the end is poisoned, like that of a Sender.

  // As in Sender.
  void progress() { ReceiverCore::progress(); }
  [[nodiscard]] bool needs_progress() const { return ReceiverCore::needs_progress(); }

 private:
  // Calls visit(part, offset), and times it if the sender wants to know.
  template <class Visit>
  void visit_part(Visit& visit, std::int64_t at, std::int64_t length, std::int64_t offset) {
    const std::span<const std::byte> part(payload() + at, static_cast<std::size_t>(length));
    if (!times_use()) [[likely]] {
      visit(part, offset);
      return;
    }
    const double begin = now();
    visit(part, offset);
    was_read(now() - begin);
  }
};

template <class Fill>
void Sender::write(Fill&& fill) {
  const std::int64_t total = ring_.message_bytes;
  const std::int64_t step = ring_.chunk_bytes;
  std::int64_t begin = 0;
  std::uint64_t chunks = 0;
  try {
    do {
      if (!ready()) [[unlikely]]
        wait_released();
      const std::int64_t length = total - begin < ring_.slot_bytes ? total - begin : ring_.slot_bytes;
      std::int64_t at = 0;
      for (chunks = 0; length - at > step;) {
        fill(std::span<std::byte>(payload() + at, static_cast<std::size_t>(step)), begin + at);
        at += step;
        publish(++chunks, at);
      }
      fill(std::span<std::byte>(payload() + at, static_cast<std::size_t>(length - at)), begin + at);
      publish(detail::whole, length);
      advance();
      begin += length;
    } while (begin < total);
  } catch (...) {
    if (begin > 0 || chunks > 0) invalidate();
    throw;
  }
}

template <class Visit>
void Receiver::read(Visit&& visit) {
  const std::int64_t total = ring_.message_bytes;
  const std::int64_t step = ring_.chunk_bytes;
  std::int64_t begin = 0;
  timed_use_ = 0;  // the times of an attempt that failed do not count
  reading_since_ = 0;
  try {
    do {
      const std::int64_t length = total - begin < ring_.slot_bytes ? total - begin : ring_.slot_bytes;
      std::uint64_t chunks = 0;
      std::int64_t at = 0;
      while (length - at > step) {
        if (!has(++chunks)) wait_arrived(detail::flag_value(use_ + 1, chunks));
        visit_part(visit, at, step, begin + at);
        at += step;
      }
      if (!ready()) wait_arrived(detail::flag_value(use_ + 1, detail::whole));
      visit_part(visit, at, length - at, begin + at);
      release();
      begin += length;
    } while (begin < total);
  } catch (...) {
    if (begin > 0) invalidate();
    throw;
  }
}

struct Channels {
  std::vector<Sender> senders;      // in the order of the specs that send
  std::vector<Receiver> receivers;  // in the order of the specs that receive
};

// Opens channels. Collective: every rank of the group calls it with the ends it requests, possibly none. Throws on
// every rank: Mismatch with both ranks if an end has no partner, or if sizes, signatures or transports differ; Error if
// memory is short. If the request of one rank cannot be met, that rank throws the reason, and all others throw Error
// with its rank and the reason.
[[nodiscard]] Channels open_channels(const Group& group, std::span<const ChannelSpec> specs,
                                     TransportKind transport = TransportKind::automatic);

// What carries channels to `rank` that are opened with this kind: "shared_memory", "mpi", "ucx: active messages over
// tcp/eth0", "mock"; empty if no channel has needed it yet.
[[nodiscard]] std::string carrier(const Group& group, int rank, TransportKind transport = TransportKind::automatic);

// Takes the place of open_channels, or of the constructor of a plan, on a rank that cannot continue: all other ranks
// throw Error with this rank's number and `why` instead of waiting for it. Collective. Throws only if it is
// interrupted.
void refuse_channels(const Group& group, const std::string& why);

}  // namespace onehop
