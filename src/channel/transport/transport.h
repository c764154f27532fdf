// A transport makes the two ends of a channel between ranks that it can connect. The fast path (detail/channel_core.h)
// is the same for every transport: a flag is a word in memory, and a bell is a word that is non-zero when storing a
// flag needs an action. The action is to wake a sleeper (shared memory) or to send bytes (MPI).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/channel.h"

namespace onehop::detail {

struct GroupState;

// The parameters of a channel, on which both ends have agreed before a transport opens it.
struct ChannelShape {
  int from = 0;
  int to = 0;
  int tag = 0;
  std::int64_t bytes = 0;
  std::int64_t slot_bytes = 0;
  std::int64_t chunk_bytes = 0;
  int slots = 2;
  StoreKind stores = StoreKind::plain;
  bool adaptive = false;  // the sender may change the kind of stores, where the transport carries the receiver's times
  std::uint32_t id = 0;   // unique among the channels between these two ranks over the life of the group
};

// The slow path of one end. One object per end, so that a transport can keep its requests in it.
class Endpoint {
 public:
  Endpoint(std::shared_ptr<GroupState> group, const ChannelShape& shape) : group_(std::move(group)), shape_(shape) {}
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // A sender's flag was stored while its bell was up. `use` counts from 1; `chunks` as in Sender::publish; `bytes` of
  // the fragment are written so far.
  virtual void published(std::uint64_t use, std::uint64_t chunks, std::int64_t bytes) = 0;
  // A receiver's `released` was stored while its bell was up.
  virtual void released(std::uint64_t use) = 0;
  // Moves whatever can be moved without waiting. Called repeatedly while a rank waits.
  virtual void progress() {}
  // Whether progress() must be called for anything to move: then a waiting rank may not sleep for long.
  [[nodiscard]] virtual bool needs_progress() const { return false; }

  [[nodiscard]] const ChannelShape& shape() const noexcept { return shape_; }
  [[nodiscard]] GroupState& group() const noexcept { return *group_; }
  // "channel 0 -> 1 (tag 3)"
  [[nodiscard]] std::string name() const;

  // As in Sender. A transport that has one rail ignores assignments.
  [[nodiscard]] virtual int rails() const { return 1; }
  virtual void assign_rails(const std::vector<std::vector<RailPiece>>& /*uses*/) {}

  // Allocates the slots of a channel that was opened unbacked, and returns how many bytes that is.
  virtual std::int64_t back_slots() { return 0; }

  // For a channel that is not ready: whether it never will be, because this rank holds both ends and waits here.
  [[nodiscard]] virtual bool self_deadlock() { return shape_.from == shape_.to; }

  // Why the end can no longer be used (Sender::write, Receiver::read). Empty if it can.
  std::string poisoned;

 protected:
  // For an end that its transport keeps after the channel is closed.
  void forget_group() noexcept { group_.reset(); }

 private:
  std::shared_ptr<GroupState> group_;
  ChannelShape shape_;
};

// Everything that a sender's (receiver's) fast path needs.
struct SenderParts {
  SlotRing ring;
  const std::atomic<std::uint64_t>* released = nullptr;
  const std::atomic<std::uint32_t>* bell = nullptr;
  std::shared_ptr<Endpoint> endpoint;
  // Of adaptive channels: the receiver's answer, and behind it the epoch for which it has exposed its arrays. Null: the
  // stores stay.
  const std::atomic<std::uint64_t>* reading_time = nullptr;
};
struct ReceiverParts {
  SlotRing ring;
  std::atomic<std::uint64_t>* released = nullptr;
  const std::atomic<std::uint32_t>* bell = nullptr;
  std::uint64_t release_mask = 0;  // `released` is stored when (use & mask) == 0
  std::shared_ptr<Endpoint> endpoint;
  std::atomic<std::uint64_t>* reading_time = nullptr;
};

struct Opened {
  std::vector<SenderParts> senders;      // in the order of the shapes with from == own rank
  std::vector<ReceiverParts> receivers;  // in the order of the shapes with to == own rank
};

class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Empty if channels to `rank` are possible, else the reason and the remedy.
  [[nodiscard]] virtual std::string unreachable(int rank) const = 0;
  // How it carries messages to `rank`, "active messages over tcp/eth0"; empty if there is nothing to say.
  [[nodiscard]] virtual std::string describe(int /*rank*/) const { return {}; }
  // The longest slot that the transport can carry.
  [[nodiscard]] virtual std::int64_t max_slot_bytes() const { return std::numeric_limits<std::int64_t>::max(); }
  // Collective over the group: every rank calls it with the channels of this transport that have an end on it. A
  // channel of a rank to itself is listed once and yields both ends.
  [[nodiscard]] virtual Opened open(const std::shared_ptr<GroupState>& group, std::span<const ChannelShape> shapes) = 0;
  // Like open(), but where the transport can, the slots get memory only when Endpoint::back_slots is called.
  [[nodiscard]] virtual Opened open_unbacked(const std::shared_ptr<GroupState>& group,
                                             std::span<const ChannelShape> shapes) {
    return open(group, shapes);
  }
};

// The size of a ring in bytes, and a ring in `memory` (cache-line aligned, zeroed).
[[nodiscard]] std::int64_t ring_bytes(const ChannelShape& shape);
[[nodiscard]] SlotRing make_ring(const ChannelShape& shape, std::byte* memory);
struct FreeRing {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using RingMemory = std::unique_ptr<std::byte, FreeRing>;
// Memory for the slots of one end of a channel over a network: zeroed, whole pages. `network` names it in the Error if
// memory is short.
[[nodiscard]] RingMemory allocate_ring(const ChannelShape& shape, const std::string& network);
// Rings of many slots release half of them at once.
[[nodiscard]] std::uint64_t release_mask(int slots);

[[nodiscard]] std::unique_ptr<Transport> make_shared_memory_transport(GroupState& group);
[[nodiscard]] std::unique_ptr<Transport> make_mock_transport();
// Collective (src/ucx). Throws on every rank if UCX cannot be used on one.
[[nodiscard]] std::unique_ptr<Transport> make_ucx_transport(GroupState& group);

}  // namespace onehop::detail
