// A `Channel` is a prepared one-way path between two ranks. Its slots lie where the sender can write and the receiver can
// read; arrival is a colour (a number that only grows) beside the data, and so is permission to write again.
// docs/design/protocol.md states the protocol; the inline functions below are its fast path, the same for every transport.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/forks.h"
#include "onehop/group.h"

namespace onehop {

// How a sender writes into a slot. Which is best depends on the machine and the size: see tuning.h.
enum class StoreKind : std::uint8_t {
  plain,        // ordinary stores
  prefetch,     // ordinary stores, lines fetched for writing 1 KiB ahead
  demote,       // ordinary stores, each line pushed out of the own cache at once (cldemote)
  nontemporal,  // stores past the caches
};

// One end that this rank wants. Both ends of a channel must ask for it in the same `open_channels`.
struct ChannelSpec {
  enum class Direction : std::uint8_t { send, receive };
  Direction direction = Direction::send;
  int peer = 0;            // may be the own rank
  std::int64_t bytes = 0;  // of one message; 0 is a bare signal
  int tag = 0;             // tells channels between the same two ranks apart
  // The sender's choice; 0 lets onehop choose. Messages longer than a slot are cut in fragments that pass through the
  // slots one after the other: staging is slots * slot_bytes and no more.
  int slots = 0;
  std::int64_t slot_bytes = 0;
  std::int64_t chunk_bytes = 0;  // a colour is raised after each chunk of a fragment
  std::uint64_t signature = 0;   // must agree on both ends: what the messages mean
};

// Copies with stores of that kind. A release store after it (a colour) comes after the copy for everyone.
void store_bytes(StoreKind kind, std::byte* to, std::span<const std::byte> from);

// The same for several pieces in a row: finish_pieces comes after the last and before the release store.
void store_piece(StoreKind kind, std::byte* to, std::span<const std::byte> from);
void finish_pieces(StoreKind kind) noexcept;

enum class TransportKind : std::uint8_t {
  automatic,  // shared memory where it is, else MPI
  shared_memory,
  mpi,
  mock,  // moves nothing and never waits: isolates the cost of packing
};

[[nodiscard]] TransportKind transport_from_string(std::string_view name);
[[nodiscard]] std::string_view to_string(TransportKind kind);

namespace detail {

class Endpoint;  // the slow path of a channel end: waiting, and what a transport does when its bell is up

// The colour of use u of a slot after c chunks of it were written is (u << chunk_bits) | c; `whole` stands for all of them.
inline constexpr int chunk_bits = 16;
inline constexpr std::uint64_t whole = (std::uint64_t{1} << chunk_bits) - 1;

[[nodiscard]] constexpr std::uint64_t colour(std::uint64_t use, std::uint64_t chunks) noexcept {
  return (use << chunk_bits) | chunks;
}

// What both ends of a channel know of its slots. A slot is its colour, then the payload: right behind the colour if both
// fit in one cache line, else from the next line on.
struct SlotRing {
  std::byte* first = nullptr;
  std::uint64_t stride = 0;
  std::uint32_t slots = 0;
  std::uint32_t payload = 0;  // offset of the payload in a slot
  std::int64_t slot_bytes = 0;
  std::int64_t chunk_bytes = 0;
  std::int64_t message_bytes = 0;

  [[nodiscard]] std::atomic<std::uint64_t>& colour_at(std::byte* slot) const noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(slot);
  }
  [[nodiscard]] std::byte* after(std::byte* slot) const noexcept {
    slot += stride;
    return slot == first + stride * slots ? first : slot;
  }
};

// memcpy, without the call for the few words that most messages and pieces are: two copies of half the size that may overlap.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  struct Block {
    std::byte bytes[16];
  };
  const auto load = [from](std::size_t at) {
    Block block;
    std::memcpy(&block, from + at, 16);
    return block;
  };
  if (n == 8) {
    std::memcpy(to, from, 8);
  } else if (n >= 16 && n <= 32) {
    const Block head = load(0);
    const Block tail = load(n - 16);
    std::memcpy(to, &head, 16);
    std::memcpy(to + n - 16, &tail, 16);
  } else if (n > 32 && n <= 64) {
    const Block a = load(0);
    const Block b = load(16);
    const Block c = load(n - 32);
    const Block d = load(n - 16);
    std::memcpy(to, &a, 16);
    std::memcpy(to + 16, &b, 16);
    std::memcpy(to + n - 32, &c, 16);
    std::memcpy(to + n - 16, &d, 16);
  } else if (n != 0) {  // memcpy may not be given a null pointer, even for nothing
    std::memcpy(to, from, n);
  }
}

}  // namespace detail

// The sending end. Not for two threads at once; different channels may be used by different threads.
class Sender {
 public:
  Sender() = default;

  // Bytes of one message, and whether it fits in a slot as a whole (then `slot` may be used).
  [[nodiscard]] std::int64_t bytes() const noexcept { return ring_.message_bytes; }
  [[nodiscard]] bool in_place() const noexcept { return ring_.message_bytes <= ring_.slot_bytes; }
  [[nodiscard]] int peer() const noexcept { return peer_; }

  // Whether the next slot can be written without waiting.
  [[nodiscard]] bool ready() noexcept {
    if (forks_ != detail::forks.load(std::memory_order_relaxed)) [[unlikely]]
      return false;  // and wait_released() throws
    if (released_seen_ + ring_.slots > use_) return true;
    released_seen_ = released_->load(std::memory_order_acquire);
    return released_seen_ + ring_.slots > use_;
  }

  // The memory of the next message, waiting until it may be written. Write the message there, then call put().
  // Throws BadInput unless `in_place()`, PeerLost, Timeout.
  [[nodiscard]] std::span<std::byte> slot() {
    if (!ready()) [[unlikely]]
      wait_released();
    if (!in_place()) [[unlikely]]
      throw_not_in_place();
    return {at_ + ring_.payload, static_cast<std::size_t>(ring_.message_bytes)};
  }

  // Publishes what was written into slot().
  void put() {
    publish(detail::whole, ring_.message_bytes);
    advance();
  }

  // Copies a message into the channel and publishes it, in chunks and fragments as the channel was made.
  // Throws BadInput unless message.size() == bytes(), PeerLost, Timeout.
  void put(std::span<const std::byte> message) {
    if (static_cast<std::int64_t>(message.size()) != ring_.message_bytes || !single_chunk_) [[unlikely]] {
      put_in_chunks(message);
      return;
    }
    if (!ready()) [[unlikely]]
      wait_released();
    detail::copy_bytes(at_ + ring_.payload, message.data(), message.size());
    put();
  }

  // Lets the caller write the message where it will be read, in parts that are published one by one: fill(part, offset)
  // writes all of `part` (a span of bytes), the message from `offset` on. For messages of any length. Throws PeerLost,
  // Timeout, and what `fill` throws.
  template <class Fill>
  void write(Fill&& fill);

  // A put() or write() that throws before anything of its message was published may be called again. Later the end is
  // spent: nobody knows any more where the next message begins, so every further use throws Error saying what happened.

  // For plans: the parts of put(). `payload` is where the current fragment goes; `publish(c, n)` tells that c chunks, n
  // bytes in all, of it are written (detail::whole: all of it); `advance` goes on to the next fragment.
  [[nodiscard]] std::byte* payload() const noexcept { return at_ + ring_.payload; }
  [[nodiscard]] const detail::SlotRing& ring() const noexcept { return ring_; }
  [[nodiscard]] StoreKind stores() const noexcept { return stores_; }
  void publish(std::uint64_t chunks, std::int64_t bytes) {
    ring_.colour_at(at_).store(detail::colour(use_ + 1, chunks), std::memory_order_release);
    // The compiler must not look at the bell before the colour is out; the processor is kept in order by the sleeper's
    // own barrier (docs/design/protocol.md, "Sleeping").
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (bell_->load(std::memory_order_relaxed) != 0) [[unlikely]]
      ring_bell(chunks, bytes);
  }
  void advance() noexcept {
    ++use_;
    at_ = ring_.after(at_);
  }
  void wait_released();
  // Moves what can be moved without waiting; needed between looks where needs_progress() says so. Whoever looks again and again at
  // a channel without waiting calls it on the own channels that need it: their messages may be under way.
  void progress();
  [[nodiscard]] bool needs_progress() const;

 private:
  friend struct ChannelAccess;
  void put_in_chunks(std::span<const std::byte> message);
  void ring_bell(std::uint64_t chunks, std::int64_t bytes);
  // Called while an exception is handled that broke off a message: from now on every slow path throws, and all lead there.
  void break_off();
  [[noreturn]] void throw_not_in_place() const;

  std::byte* at_ = nullptr;  // the slot of the next use
  std::uint64_t use_ = 0;    // uses published so far
  std::uint64_t released_seen_ = 0;
  const std::atomic<std::uint64_t>* released_ = nullptr;
  const std::atomic<std::uint32_t>* bell_ = nullptr;
  detail::SlotRing ring_;
  StoreKind stores_ = StoreKind::plain;
  bool single_chunk_ = true;
  int peer_ = -1;
  std::uint32_t forks_ = 0;  // when the channel was opened
  std::shared_ptr<detail::Endpoint> endpoint_;
};

// The receiving end.
class Receiver {
 public:
  Receiver() = default;

  [[nodiscard]] std::int64_t bytes() const noexcept { return ring_.message_bytes; }
  [[nodiscard]] bool in_place() const noexcept { return ring_.message_bytes <= ring_.slot_bytes; }
  [[nodiscard]] int peer() const noexcept { return peer_; }

  // Whether the next fragment (the next message, if `in_place()`) has arrived as a whole.
  [[nodiscard]] bool ready() const noexcept { return arrived() >= detail::colour(use_ + 1, detail::whole); }

  // Waits for the next message and returns it where it lies. It stays there until release(). Throws BadInput unless
  // `in_place()`, PeerLost, Timeout.
  [[nodiscard]] std::span<const std::byte> wait() {
    if (!ready()) wait_arrived(detail::colour(use_ + 1, detail::whole));
    if (!in_place()) [[unlikely]]
      throw_not_in_place();
    return {at_ + ring_.payload, static_cast<std::size_t>(ring_.message_bytes)};
  }

  // Gives the slot back to the sender.
  void release() {
    if (forks_ != detail::forks.load(std::memory_order_relaxed)) [[unlikely]]
      throw_of_parent();
    ++use_;
    at_ = ring_.after(at_);
    // Every release of a ring of many slots would move a cache line; half of them at once are early enough.
    if ((use_ & release_mask_) == 0) {
      released_->store(use_, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (bell_->load(std::memory_order_relaxed) != 0) [[unlikely]]
        ring_bell();
    }
  }

  // Waits for the next message, copies it to `message` chunk by chunk as it arrives, and releases it.
  // Throws BadInput unless message.size() == bytes(), PeerLost, Timeout.
  void get(std::span<std::byte> message);

  // Waits for the next message and shows it where it lies, in the parts in which it arrives: visit(part, offset). A part
  // must not be used after `visit` has returned. For messages of any length. Throws PeerLost, Timeout, and what `visit`
  // throws.
  template <class Visit>
  void read(Visit&& visit);

  // A get() or read() that throws while the whole message is still there may be called again, and begins again. Once
  // a slot of it has gone back to the sender the end is spent, as a Sender's.

  // For plans: where the current fragment lies, and how far it has come.
  [[nodiscard]] const std::byte* payload() const noexcept { return at_ + ring_.payload; }
  [[nodiscard]] const detail::SlotRing& ring() const noexcept { return ring_; }
  [[nodiscard]] std::uint64_t arrived() const noexcept { return ring_.colour_at(at_).load(std::memory_order_acquire); }
  // Whether `chunks` chunks of the current fragment have arrived.
  [[nodiscard]] bool has(std::uint64_t chunks) const noexcept { return arrived() >= detail::colour(use_ + 1, chunks); }
  void wait_arrived(std::uint64_t colour);
  void progress();
  [[nodiscard]] bool needs_progress() const;

 private:
  friend struct ChannelAccess;
  void ring_bell();
  void break_off();
  [[noreturn]] void throw_not_in_place() const;
  [[noreturn]] void throw_of_parent() const;

  std::byte* at_ = nullptr;
  std::uint64_t use_ = 0;  // uses released so far
  std::uint64_t release_mask_ = 0;
  std::atomic<std::uint64_t>* released_ = nullptr;
  const std::atomic<std::uint32_t>* bell_ = nullptr;
  detail::SlotRing ring_;
  int peer_ = -1;
  std::uint32_t forks_ = 0;  // when the channel was opened
  std::shared_ptr<detail::Endpoint> endpoint_;
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
    if (begin > 0 || chunks > 0) break_off();
    throw;
  }
}

template <class Visit>
void Receiver::read(Visit&& visit) {
  const std::int64_t total = ring_.message_bytes;
  const std::int64_t step = ring_.chunk_bytes;
  std::int64_t begin = 0;
  try {
    do {
      const std::int64_t length = total - begin < ring_.slot_bytes ? total - begin : ring_.slot_bytes;
      std::uint64_t chunks = 0;
      std::int64_t at = 0;
      while (length - at > step) {
        if (!has(++chunks)) wait_arrived(detail::colour(use_ + 1, chunks));
        visit(std::span<const std::byte>(payload() + at, static_cast<std::size_t>(step)), begin + at);
        at += step;
      }
      if (!ready()) wait_arrived(detail::colour(use_ + 1, detail::whole));
      visit(std::span<const std::byte>(payload() + at, static_cast<std::size_t>(length - at)), begin + at);
      release();
      begin += length;
    } while (begin < total);
  } catch (...) {
    if (begin > 0) break_off();
    throw;
  }
}

struct Channels {
  std::vector<Sender> senders;      // in the order of the specs that send
  std::vector<Receiver> receivers;  // in the order of the specs that receive
};

// Prepares channels. Collective: every rank of the group calls it with the ends it wants, possibly none. Throws, on every
// rank alike, Mismatch naming both ranks where an end has no partner or sizes, signatures or transports differ; Error where
// memory does not suffice. A rank whose own wishes cannot be met throws why, and all others Error with its number and reason.
[[nodiscard]] Channels open_channels(const Group& group, std::span<const ChannelSpec> specs,
                                     TransportKind transport = TransportKind::automatic);

// Takes part in an open_channels, or in the making of a plan, for a rank that has found out before that it cannot: all others
// throw Error with this rank's number and `why` instead of waiting for it. Collective; throws nothing but an interrupt.
void refuse_channels(const Group& group, const std::string& why);

}  // namespace onehop
