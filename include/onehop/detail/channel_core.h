// What the two ends of a channel consist of: the protocol's fast path (docs/design/protocol.md), inline and the same
// for every transport. `Sender` and `Receiver` (channel.h) are made of it for programs; plans, collectives and
// transports use it directly.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "onehop/detail/forks.h"

namespace onehop {

enum class StoreKind : std::uint8_t;  // channel.h

}  // namespace onehop

namespace onehop::detail {

class Endpoint;  // the slow path of a channel end: waiting, and a transport's work when its bell is set
class AdaptiveStores;
struct SenderParts;  // what a transport makes for an end
struct ReceiverParts;

// Where a sender of a plan stores a fragment.
enum class StoreTarget : std::uint8_t {
  slot,
  array,  // the receiver's, in memory that both share
};

// The flag of the u-th use of a slot is (u << chunk_bits) | c after c chunks were written, and (u << chunk_bits) |
// whole at the end.
inline constexpr int chunk_bits = 16;
inline constexpr std::uint64_t whole = (std::uint64_t{1} << chunk_bits) - 1;

// The meanings of a slot's mark; 0: none.
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

// The sending end. Only one thread at a time may use it.
class SenderCore {
 public:
  SenderCore() = default;
  explicit SenderCore(SenderParts&& parts);

  [[nodiscard]] std::int64_t bytes() const noexcept { return ring_.message_bytes; }
  [[nodiscard]] bool in_place() const noexcept { return ring_.message_bytes <= ring_.slot_bytes; }
  [[nodiscard]] int peer() const noexcept { return peer_; }

  [[nodiscard]] bool ready() noexcept {
    if (forks_ != forks.load(std::memory_order_relaxed)) [[unlikely]]
      return false;  // and wait_released() throws
    if (use_ < free_uses_) return true;
    free_uses_ = released_->load(std::memory_order_acquire) + ring_.slots;
    return use_ < free_uses_;
  }
  void wait_released();

  // The steps of Sender::put(). payload() is the memory of the current fragment. publish(c, n) tells the receiver
  // that c chunks (`whole`: all chunks), n bytes in total, are written. advance() moves to the next fragment.
  [[nodiscard]] std::byte* payload() const noexcept { return at_ + ring_.payload; }
  [[nodiscard]] const SlotRing& ring() const noexcept { return ring_; }
  void publish(std::uint64_t chunks, std::int64_t bytes) {
    ring_.flag_at(at_).store(flag_value(use_ + 1, chunks), std::memory_order_release);
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
  void progress();
  [[nodiscard]] bool needs_progress() const;

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
  // For adaptive senders whose receivers have arrays in shared memory (src/plan/direct/direct_put.h): whether the next
  // fragment should go there (AdaptiveStores), and the latest epoch for which the receiver has exposed its arrays.
  [[nodiscard]] bool puts_next(std::int64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t exposed() const noexcept { return exposed_->load(std::memory_order_acquire); }

  // Among how many network interfaces the transport chooses; 1: it does not choose. assign_rails() chooses for it: the
  // u-th use of a slot, from 0, takes uses[u % uses.size()], which is empty where the transport shall choose.
  [[nodiscard]] int rails() const;
  void assign_rails(const std::vector<std::vector<RailPiece>>& uses);

 protected:
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
  std::shared_ptr<AdaptiveStores> adaptive_;
  SlotRing ring_;
  std::size_t simple_bytes_ = 0;  // length of a message that passes in one chunk with plain stores; else `not_simple`
  StoreKind stores_{};            // plain
  int peer_ = -1;
  std::uint32_t forks_ = 0;  // when the channel was opened
  std::shared_ptr<Endpoint> endpoint_;

 private:
  void ring_bell(std::uint64_t chunks, std::int64_t bytes);
};

// The receiving end.
class ReceiverCore {
 public:
  ReceiverCore() = default;
  explicit ReceiverCore(ReceiverParts&& parts);

  [[nodiscard]] std::int64_t bytes() const noexcept { return ring_.message_bytes; }
  [[nodiscard]] bool in_place() const noexcept { return ring_.message_bytes <= ring_.slot_bytes; }
  [[nodiscard]] int peer() const noexcept { return peer_; }

  [[nodiscard]] bool ready() const noexcept { return has(whole); }
  // Whether `chunks` chunks of the current fragment have arrived.
  [[nodiscard]] bool has(std::uint64_t chunks) const noexcept { return arrived() >= flag_value(use_ + 1, chunks); }
  // The flag of the current slot.
  [[nodiscard]] std::uint64_t arrived() const noexcept { return ring_.flag_at(at_).load(std::memory_order_acquire); }
  void wait_arrived(std::uint64_t flag);

  // The memory of the current fragment.
  [[nodiscard]] const std::byte* payload() const noexcept { return at_ + ring_.payload; }
  [[nodiscard]] const SlotRing& ring() const noexcept { return ring_; }
  void release() {
    if (forks_ != forks.load(std::memory_order_relaxed)) [[unlikely]]
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
  void progress();
  [[nodiscard]] bool needs_progress() const;
  // Allocates the slots of all channels that this rank opened unbacked in the same call as this one
  // (src/channel/staging.h), and returns their size in bytes. Throws Error if memory is short.
  std::int64_t back_slots() const;

  // Whether the sender wants to know how long this use of the slot is read. Then tell was_read() so, in parts if need
  // be, before release().
  [[nodiscard]] bool times_use() const noexcept { return (mark() & mark_timed) != 0; }
  void was_read(double seconds) noexcept;
  // The sender's mark on this use of the slot, and whether it may make one.
  [[nodiscard]] std::uint64_t mark() const noexcept {
    return reading_time_ != nullptr ? ring_.mark_at(at_).load(std::memory_order_relaxed) : 0;
  }
  [[nodiscard]] bool adaptive() const noexcept { return reading_time_ != nullptr; }
  // Lets the sender write into this rank's arrays until it has published the next message (adaptive channels of plans).
  void expose(std::uint64_t epoch) noexcept { exposed_->store(epoch, std::memory_order_release); }

 protected:
  [[nodiscard]] static double now() noexcept;
  // The parts of wait() and release() for messages that are not `simple_`.
  void begin_reading();
  void end_reading() noexcept;
  void invalidate();

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
  SlotRing ring_;
  int peer_ = -1;
  std::uint32_t forks_ = 0;  // when the channel was opened
  bool simple_ = false;      // a message fits into a slot, and the sender never asks how long it is read
  std::shared_ptr<Endpoint> endpoint_;

 private:
  void ring_bell();
  [[noreturn]] void throw_forked() const;
};

}  // namespace onehop::detail
