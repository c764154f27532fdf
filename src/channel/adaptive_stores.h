// Chooses, while a channel is used, with which stores its sender writes into the slots. The best kind depends on how
// near the cores of both ends are to each other, which may change while a program runs. For plans it also chooses
// between the slots and the receiver's array, where both are possible.
//
// The sender times some of its uses of slots and asks the receiver, by a mark in the line of the slot's flag, to time
// how long it reads them. The receiver writes that time beside `released`. The sum of both times decides. Stores into
// the receiver's array (src/plan/direct/direct_put.h) have a choice of their own; there, the receiver reads one word of
// each line.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "onehop/channel.h"
#include "src/channel/store_decision.h"

namespace onehop::detail {

// Slots of at most this many bytes keep the kind of stores that the tuning names, and so do rings of more slots, in
// which a trial would take too many uses.
inline constexpr std::int64_t longest_fixed_slot = 2048;
inline constexpr int most_adaptive_slots = 8;

// Whether a sender may change the kind of its stores into slots of so many bytes. Only such senders can also write into
// the receiver's arrays, because that needs the words that both ends exchange here.
[[nodiscard]] bool stores_adapt(std::int64_t bytes) noexcept;

// A receiver's answer: the low half of the number of a use, and for how many nanoseconds it read the slot.
[[nodiscard]] constexpr std::uint64_t reading_time(std::uint64_t use, double seconds) noexcept {
  constexpr double most = 4e9;  // nanoseconds
  const double ns = seconds * 1e9 < most ? seconds * 1e9 : most;
  return use << 32U | static_cast<std::uint32_t>(ns);
}

// The sender's state.
class AdaptiveStores {
 public:
  // `bytes` is the length of the longest fragment. `answer` and `released` are the words that the receiver writes.
  AdaptiveStores(StoreKind usual, int slots, std::int64_t bytes, const std::atomic<std::uint64_t>& answer,
                 const std::atomic<std::uint64_t>& released);

  // Whether a fragment of so many bytes, which could be written into the receiver's array, should be. Call it once for
  // each of them, before begin().
  [[nodiscard]] bool puts_next(std::int64_t bytes) noexcept;
  // A use of a slot by a fragment of so many bytes begins; uses are counted from 1. Returns the kind of its stores,
  // into the slot or into the receiver's array. Only the longest fragments count, because times of different lengths
  // cannot be compared.
  [[nodiscard]] StoreKind begin(std::uint64_t use, std::int64_t bytes, StoreTarget target = StoreTarget::slot) noexcept;
  // Whether storing and reading are timed in this use.
  [[nodiscard]] bool times() const noexcept { return times_; }
  // Storing a part of the slot took so long.
  void stored(double seconds) noexcept { seconds_ += seconds; }

  [[nodiscard]] StoreKind chosen(StoreTarget target = StoreTarget::slot) const noexcept {
    return of(target).decision.chosen();
  }

 private:
  struct Choice {
    StoreDecision decision;
    StoreKind kind;
    std::uint64_t counted = 0;  // uses by the longest fragments
  };

  void collect() noexcept;
  [[nodiscard]] bool is_timed(const Choice& choice) const noexcept;
  // Plans cut messages between elements, so even the longest fragments may be a little shorter than a slot.
  [[nodiscard]] bool is_long(std::int64_t bytes) const noexcept { return bytes >= bytes_ - bytes_ / 8; }
  [[nodiscard]] Choice& of(StoreTarget target) noexcept { return choices_[static_cast<std::size_t>(target)]; }
  [[nodiscard]] const Choice& of(StoreTarget target) const noexcept {
    return choices_[static_cast<std::size_t>(target)];
  }

  const std::atomic<std::uint64_t>& answer_;
  const std::atomic<std::uint64_t>& released_;
  std::array<Choice, 2> choices_;
  Decision target_;       // between the receiver's array, way 0, and slots
  bool chooses_ = false;  // whether there has been such a choice
  int slots_;
  std::int64_t bytes_;
  bool times_ = false;
  // A receiver that reads slots in a way that is not timed does not answer. Then no kind is tried for a while.
  bool answered_ = false;
  int lost_ = 0;  // answers, one after the other
  int silent_ = 0;
  double seconds_ = 0;
  // The use whose answer is awaited; 0: none.
  std::uint64_t awaited_ = 0;
  StoreKind awaited_kind_;
  StoreTarget awaited_target_ = StoreTarget::slot;
};

}  // namespace onehop::detail
