// A channel is a prepared one-way path between two ranks. The sender writes a message into a slot and then stores the
// slot's flag; the receiver polls the flag. A flag holds the sequence number of the message, so it only grows and never
// has to be cleared. (QuickReduce calls this a coloured flag.) The receiver returns slots to the sender through a
// second number, `released`. The protocol is described in docs/design/protocol.md. The inline functions below are its
// fast path, the same for every transport.
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

// How a sender writes into a slot. The best kind depends on the machine and on the message size: see tuning.h.
enum class StoreKind : std::uint8_t {
  plain,        // ordinary stores
  prefetch,     // ordinary stores, lines fetched for writing 1 KiB ahead
  demote,       // ordinary stores, each line pushed out of the core's own cache at once (cldemote)
  nontemporal,  // stores that bypass the caches
};

// Where a sender of a plan stores a fragment.
enum class StoreTarget : std::uint8_t {
  slot,
  array,  // the receiver's, in memory that both share
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

// Copies `from` to `to` with stores of this kind. A later release store, such as that of a flag, becomes visible after
// the copy.
void store_bytes(StoreKind kind, std::byte* to, std::span<const std::byte> from);

// The same for a series of pieces. Call finish_pieces after the last piece and before the release store.
void store_piece(StoreKind kind, std::byte* to, std::span<const std::byte> from);
void finish_pieces(StoreKind kind) noexcept;

enum class TransportKind : std::uint8_t {
  automatic,  // shared memory between ranks of one machine, else MPI, or UCX if the group was made without MPI
  shared_memory,
  mpi,
  ucx,
  mock,  // moves nothing and never waits; isolates the cost of packing in benchmarks
};

[[nodiscard]] TransportKind transport_from_string(std::string_view name);
[[nodiscard]] std::string_view to_string(TransportKind kind);

namespace detail {

class Endpoint;  // the slow path of a channel end: waiting, and a transport's work when its bell is set
class AdaptiveStores;

// The flag of the u-th use of a slot is (u << chunk_bits) | c after c chunks were written, and (u << chunk_bits) |
// whole at the end.
inline constexpr int chunk_bits = 16;
inline constexpr std::uint64_t whole = (std::uint64_t{1} << chunk_bits) - 1;

// What the mark of a slot says about its use; 0: nothing.
inline constexpr std::uint64_t mark_timed = 1;     // the receiver should tell for how long it reads
inline constexpr std::uint64_t mark_in_array = 2;  // the fragment is in the receiver's array, not in the slot

// The bytes of a fragment up to `end` that no piece before it holds, and the network interface that carries them.
struct RailPiece {
  int rail = 0;
  std::int64_t end = 0;
};

[[nodiscard]] constexpr std::uint64_t flag_value(std::uint64_t use, std::uint64_t chunks) noexcept {
  return (use << chunk_bits) | chunks;
}

// Layout of a channel's slots, the same on both ends. A slot holds its flag, then the payload. The payload follows the
// flag directly if both fit in one cache line, else it starts at the next line; the mark of adaptive channels is then
// behind the flag.
struct SlotRing {
  std::byte* first = nullptr;
  std::byte* end = nullptr;  // behind the last slot
  std::uint64_t stride = 0;
  std::uint32_t slots = 0;
  std::uint32_t payload = 0;  // offset of the payload in a slot
  std::int64_t slot_bytes = 0;
  std::int64_t chunk_bytes = 0;
  std::int64_t message_bytes = 0;

  [[nodiscard]] std::atomic<std::uint64_t>& flag_at(std::byte* slot) const noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(slot);
  }
  // A word of the bits above, of adaptive channels only.
  [[nodiscard]] std::atomic<std::uint64_t>& mark_at(std::byte* slot) const noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(slot + sizeof(std::uint64_t));
  }
  [[nodiscard]] std::byte* after(std::byte* slot) const noexcept {
    slot += stride;
    return slot == end ? first : slot;
  }
};

// memcpy without a function call for short copies, the common case. Copies the head and the tail, which may overlap.
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
  } else if (n != 0) {  // memcpy must not get a null pointer, even for 0 bytes
    std::memcpy(to, from, n);
  }
}

}  // namespace detail

// The sending end. Only one thread at a time may use it; different threads may use different channels.
class Sender {
 public:
  Sender() = default;

  // Bytes of one message; whether a message fits in one slot (then slot() may be used); the rank at the other end.
  [[nodiscard]] std::int64_t bytes() const noexcept { return ring_.message_bytes; }
  [[nodiscard]] bool in_place() const noexcept { return ring_.message_bytes <= ring_.slot_bytes; }
  [[nodiscard]] int peer() const noexcept { return peer_; }

  // Whether the next slot can be written without waiting.
  [[nodiscard]] bool ready() noexcept {
    if (forks_ != detail::forks.load(std::memory_order_relaxed)) [[unlikely]]
      return false;  // and wait_released() throws
    if (use_ < free_uses_) return true;
    free_uses_ = released_->load(std::memory_order_acquire) + ring_.slots;
    return use_ < free_uses_;
  }

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

  // For plans: the steps of put(). payload() is the memory of the current fragment. publish(c, n) tells the receiver
  // that c chunks (detail::whole: all chunks), n bytes in total, are written. advance() moves to the next fragment.
  [[nodiscard]] std::byte* payload() const noexcept { return at_ + ring_.payload; }
  [[nodiscard]] const detail::SlotRing& ring() const noexcept { return ring_; }
  // The kind of stores of the current use. An adaptive sender chooses anew for each use: call begin_use() with
  // the bytes of the fragment when the slot is ready and before anything is written into it or into the receiver's
  // array. If times_use(), tell stored() how long storing took, in parts if need be. All three do nothing for other
  // senders.
  [[nodiscard]] StoreKind stores() const noexcept { return stores_; }
  [[nodiscard]] bool adaptive() const noexcept { return adaptive_ != nullptr; }
  void begin_use(std::int64_t bytes, StoreTarget target = StoreTarget::slot);
  [[nodiscard]] bool times_use() const noexcept;
  void stored(double seconds) noexcept;
  // The kind that has proved best so far.
  [[nodiscard]] StoreKind best_stores(StoreTarget target = StoreTarget::slot) const noexcept;
  // For adaptive senders of plans whose receivers have arrays in shared memory (src/plan/direct_put.h): the latest
  // epoch for which the receiver has exposed its arrays.
  [[nodiscard]] std::uint64_t exposed() const noexcept { return exposed_->load(std::memory_order_acquire); }
  void publish(std::uint64_t chunks, std::int64_t bytes) {
    ring_.flag_at(at_).store(detail::flag_value(use_ + 1, chunks), std::memory_order_release);
    // The compiler must not read the bell before it stores the flag. The barrier of the sleeper orders the processor
    // (docs/design/protocol.md, "Sleeping").
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (bell_->load(std::memory_order_relaxed) != 0) [[unlikely]]
      ring_bell(chunks, bytes);
  }
  void advance() noexcept {
    ++use_;
    at_ = ring_.after(at_);
  }
  void wait_released();
  // Moves whatever can be moved without waiting. A program that polls channels instead of waiting must call it between
  // polls on each of its channels whose needs_progress() is true.
  void progress();
  [[nodiscard]] bool needs_progress() const;
  // Among how many network interfaces the transport chooses; 1: it does not choose. assign_rails() chooses for it: the
  // u-th use of a slot, from 0, takes uses[u % uses.size()], which is empty where the transport shall choose.
  [[nodiscard]] int rails() const;
  void assign_rails(const std::vector<std::vector<detail::RailPiece>>& uses);

 private:
  friend struct ChannelAccess;
  void put_in_chunks(std::span<const std::byte> message);
  void ring_bell(std::uint64_t chunks, std::int64_t bytes);
  // Poisons the end. Called while handling an exception that interrupted a message; every later use reaches a slow
  // path, which throws.
  void invalidate();
  [[noreturn]] void throw_not_in_place() const;

  static constexpr std::size_t not_simple = ~std::size_t{0};
  std::byte* at_ = nullptr;      // the slot of the next use
  std::uint64_t use_ = 0;        // uses published so far
  std::uint64_t free_uses_ = 0;  // uses before this one have a free slot, as far as was seen
  const std::atomic<std::uint64_t>* released_ = nullptr;
  const std::atomic<std::uint32_t>* bell_ = nullptr;
  const std::atomic<std::uint64_t>* exposed_ = nullptr;  // null unless the sender is adaptive
  std::shared_ptr<detail::AdaptiveStores> adaptive_;
  detail::SlotRing ring_;
  std::size_t simple_bytes_ = 0;  // length of a message that passes in one chunk with plain stores; else `not_simple`
  StoreKind stores_ = StoreKind::plain;
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

  // Whether the next fragment (the next message, if `in_place()`) has arrived completely.
  [[nodiscard]] bool ready() const noexcept { return arrived() >= detail::flag_value(use_ + 1, detail::whole); }

  // Waits for the next message and returns the slot that holds it. The message stays valid until release(). Throws
  // BadInput unless `in_place()`, PeerLost, Timeout.
  [[nodiscard]] std::span<const std::byte> wait() {
    if (!ready()) wait_arrived(detail::flag_value(use_ + 1, detail::whole));
    if (!simple_) [[unlikely]]
      begin_reading();
    return {at_ + ring_.payload, static_cast<std::size_t>(ring_.message_bytes)};
  }

  // Returns the slot to the sender.
  void release() {
    if (forks_ != detail::forks.load(std::memory_order_relaxed)) [[unlikely]]
      throw_forked();
    if (!simple_ && reading_since_ != 0) [[unlikely]]
      end_reading();
    ++use_;
    at_ = ring_.after(at_);
    // Each store to `released` moves a cache line. A ring of many slots releases half of its slots at once.
    if ((use_ & release_mask_) == 0) {
      released_->store(use_, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (bell_->load(std::memory_order_relaxed) != 0) [[unlikely]]
        ring_bell();
    }
  }

  // Waits for the next message, copies it to `message` chunk by chunk as it arrives, and releases its slots.
  // Throws BadInput unless message.size() == bytes(), PeerLost, Timeout.
  void get(std::span<std::byte> message);

  // Waits for the next message, of any length, and calls visit(part, offset) for each part as it arrives, without a
  // copy. A part must not be used after `visit` has returned. Throws PeerLost, Timeout, and whatever `visit` throws.
  template <class Visit>
  void read(Visit&& visit);

  // A get() or read() that throws before it released a slot may be called again, and starts again with the same
  // message. If it throws later, the end is poisoned, like that of a Sender.

  // For plans: the memory of the current fragment, and the flag of its slot.
  [[nodiscard]] const std::byte* payload() const noexcept { return at_ + ring_.payload; }
  [[nodiscard]] const detail::SlotRing& ring() const noexcept { return ring_; }
  [[nodiscard]] std::uint64_t arrived() const noexcept { return ring_.flag_at(at_).load(std::memory_order_acquire); }
  // Whether `chunks` chunks of the current fragment have arrived.
  [[nodiscard]] bool has(std::uint64_t chunks) const noexcept {
    return arrived() >= detail::flag_value(use_ + 1, chunks);
  }
  void wait_arrived(std::uint64_t flag);
  // Whether the sender wants to know how long this use of the slot is read. Then tell was_read() so, in parts if need
  // be, before release().
  [[nodiscard]] bool times_use() const noexcept { return (mark() & detail::mark_timed) != 0; }
  void was_read(double seconds) noexcept;
  // What the sender has marked this use of the slot with, and whether it may.
  [[nodiscard]] std::uint64_t mark() const noexcept {
    return reading_time_ != nullptr ? ring_.mark_at(at_).load(std::memory_order_relaxed) : 0;
  }
  [[nodiscard]] bool adaptive() const noexcept { return reading_time_ != nullptr; }
  // Lets the sender write into this rank's arrays until it has published the next message (adaptive channels of plans).
  void expose(std::uint64_t epoch) noexcept { exposed_->store(epoch, std::memory_order_release); }
  void progress();
  [[nodiscard]] bool needs_progress() const;

 private:
  friend struct ChannelAccess;
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
  [[nodiscard]] static double now() noexcept;
  // The parts of wait() and release() for messages that are not `simple_`.
  void begin_reading();
  void end_reading() noexcept;
  void ring_bell();
  void invalidate();
  [[noreturn]] void throw_forked() const;

  std::byte* at_ = nullptr;
  std::uint64_t use_ = 0;  // uses released so far
  std::uint64_t release_mask_ = 0;
  std::atomic<std::uint64_t>* released_ = nullptr;
  std::atomic<std::uint64_t>* reading_time_ = nullptr;  // null unless the sender is adaptive
  std::atomic<std::uint64_t>* exposed_ = nullptr;       // the same
  std::uint64_t timed_use_ = 0;
  double seconds_ = 0;        // for which it was read so far
  double reading_since_ = 0;  // when wait() returned a slot that is timed; 0: never
  const std::atomic<std::uint32_t>* bell_ = nullptr;
  detail::SlotRing ring_;
  int peer_ = -1;
  std::uint32_t forks_ = 0;  // when the channel was opened
  bool simple_ = false;      // a message fits into a slot, and the sender never asks how long it is read
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
