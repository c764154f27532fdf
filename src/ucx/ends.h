// The two ends of a channel over UCX. Both keep slots in their own memory; the bell of both is always up.
//
// With messages, a fragment travels in active messages, its parts, each with its place in the fragment; the receiver
// copies them into the slot and stores the flag. Several rails share the parts, which may overtake each other; each
// part takes the rail of its bytes if the fragment has an assignment. With puts, the sender writes the fragment into
// the receiver's slot and then, behind a fence, its flag.
//
// The receiver has more slots than the sender, so that it returns slots in batches and the sender seldom waits for
// them: a message that returns slots waits behind the data of the other direction.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "src/channel/transport/transport.h"
#include "src/ucx/connections.h"

namespace onehop::detail::ucx {

// A fragment's part, or, without data and of puts, nothing.
struct Part {
  Destination to;
  std::uint64_t use = 0;
  std::int64_t at = 0;       // where it begins in the fragment
  std::uint64_t chunks = 0;  // that are complete with this part, as in Sender::publish
};
struct Release {
  static constexpr std::uint64_t closed = std::numeric_limits<std::uint64_t>::max();
  Destination to;
  std::uint64_t use = 0;  // the last one that has been released; `closed`: the receiver needs nothing any more
};
// The address of a receiver's slots; the packed key is the data of the message.
struct SlotsAt {
  Destination to;
  std::uint64_t address = 0;
};

// The part of a slot's fragment that has arrived. Parts of one use arrive in any order, and bytes may arrive twice, cut
// differently, also after the use: a sender sends again what a rail that is down may have lost. New parts of two uses
// never mix, because the sender waits until the receiver has released the first.
class Filling {
 public:
  // Bytes of the fragment.
  struct Range {
    std::int64_t first = 0;
    std::int64_t last = 0;  // the byte behind it
  };
  // Makes room for this many parts that overtake others.
  void expect(std::size_t parts) { early_.reserve(parts); }
  // Takes a part of `bytes`, and calls `copy(range)` for what is new of it. Returns how many chunks from the beginning
  // on are now complete, `whole` if all are, and 0 if this part completes none.
  template <class Copy>
  [[nodiscard]] std::uint64_t add(const Part& part, std::int64_t bytes, const Copy& copy) {
    if (!begin(part, bytes)) return 0;
    std::int64_t at = std::max(part.at, in_order_);
    const std::int64_t end = part.at + bytes;
    const auto take = [&](std::int64_t last) {
      copy(Range{at, last});
      bytes_ += last - at;
    };
    for (const Early& one : early_) {
      if (one.first >= end) break;
      if (one.first > at) take(one.first);
      at = std::max(at, one.last);
    }
    if (at < end) take(end);
    return count(part, end);
  }

 private:
  // Whether a part may have new bytes.
  [[nodiscard]] bool begin(const Part& part, std::int64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t count(const Part& part, std::int64_t end) noexcept;

  std::uint64_t use_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t in_order_ = 0;  // bytes from the beginning on
  std::int64_t length_ = -1;   // of the fragment; -1: its last part has not arrived
  std::uint64_t chunks_ = 0;   // complete ones
  struct Early {
    std::int64_t first = 0;
    std::int64_t last = 0;  // the byte behind it
    std::uint64_t chunks = 0;
  };
  std::vector<Early> early_;  // parts before which something is missing, by their first bytes
};

// The slots of the receiver of a channel.
[[nodiscard]] ChannelShape receiver_shape(const ChannelShape& shape);

class SendEnd final : public Endpoint, public Inbox {
 public:
  SendEnd(std::shared_ptr<GroupState> group, const ChannelShape& shape, std::shared_ptr<Connections> connections,
          bool puts);
  ~SendEnd() override;
  // Deletes an end whose channel is closed, now or once the receiver has all of it.
  static void retire(SendEnd* end);
  [[nodiscard]] bool is_done() const noexcept { return closed_ || returned_ >= given_; }

  void published(std::uint64_t use, std::uint64_t chunks, std::int64_t bytes) override;
  void released(std::uint64_t) override {}
  void progress() override;
  [[nodiscard]] bool needs_progress() const override { return true; }
  [[nodiscard]] int rails() const override { return connections_->rails_to(shape().to); }
  void assign_rails(const std::vector<std::vector<RailPiece>>& uses) override { assigned_ = uses; }
  void arrived(const std::byte* header, std::size_t header_bytes, const std::byte* data,
               std::size_t bytes) noexcept override;
  void send_again() noexcept override;

  [[nodiscard]] const SlotRing& ring() const noexcept { return ring_; }
  // Whether the receiver's slots are known; always with messages.
  [[nodiscard]] bool can_send() const noexcept { return !puts_ || !packed_key_.empty(); }
  std::atomic<std::uint64_t> released_word{0};

 private:
  [[nodiscard]] std::size_t index(std::uint64_t use) const noexcept {
    return static_cast<std::size_t>((use - 1) % ring_.slots);
  }
  [[nodiscard]] std::byte* slot(std::uint64_t use) const noexcept { return ring_.first + index(use) * ring_.stride; }
  // Which rail carries the byte `at` of a use and those behind it, up to where, and how long parts are there.
  struct Way {
    int rail = Connections::any_rail;
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    std::int64_t part_bytes = 0;
  };
  [[nodiscard]] Way way(std::uint64_t use, std::int64_t at) const noexcept;
  void send_range(std::uint64_t use, std::int64_t first, std::int64_t last, std::uint64_t chunks);
  void send_parts(std::uint64_t use, std::uint64_t chunks, std::int64_t bytes);
  void put(std::uint64_t use, std::int64_t bytes);
  void update();

  std::shared_ptr<Connections> connections_;
  std::shared_ptr<Outgoing> outgoing_;
  SlotRing ring_;
  SlotRing remote_;                 // the shape of the receiver's; its memory is not this rank's
  std::uint64_t remote_first_ = 0;  // where the receiver has it; of puts
  bool puts_;
  std::int64_t part_bytes_;  // the longest part without an assignment
  std::vector<std::vector<RailPiece>> assigned_;
  RemoteKey* key_ = nullptr;
  std::vector<std::byte> packed_key_;
  std::uint64_t given_ = 0;     // uses passed to UCX
  std::uint64_t sent_ = 0;      // uses that UCX has done with
  std::uint64_t returned_ = 0;  // uses that the receiver has released
  std::int64_t at_ = 0;         // bytes of use given_ + 1 that are passed to UCX
  const int rank_;              // this one
  bool closed_ = false;         // the receiver's end
  // Over several rails a slot keeps its fragment until the receiver has released it.
  const bool keeps_;
  std::vector<std::int64_t> lengths_;  // by slot: bytes of the fragment
  std::uint64_t chunks_ = 0;           // complete ones of the bytes before `at_`
  bool was_lost_ = false;  // in the last progress(); what came before the connection failed has been seen since
};

class ReceiveEnd final : public Endpoint, public Inbox {
 public:
  ReceiveEnd(std::shared_ptr<GroupState> group, const ChannelShape& shape, std::shared_ptr<Connections> connections,
             bool puts);
  ~ReceiveEnd() override;

  void published(std::uint64_t, std::uint64_t, std::int64_t) override {}
  void released(std::uint64_t use) override;
  void progress() override;
  [[nodiscard]] bool needs_progress() const override { return true; }
  void arrived(const std::byte* header, std::size_t header_bytes, const std::byte* data,
               std::size_t bytes) noexcept override;

  void send_again() noexcept override;

  // With puts: tells the sender where the slots are.
  void announce();
  [[nodiscard]] const SlotRing& ring() const noexcept { return ring_; }
  std::atomic<std::uint64_t> released_word{0};

 private:
  std::shared_ptr<Connections> connections_;
  RingMemory memory_;
  SlotRing ring_;
  std::unique_ptr<Registered> registered_;  // of puts
  std::vector<Filling> filling_;            // by slot
  bool was_lost_ = false;
};

}  // namespace onehop::detail::ucx
