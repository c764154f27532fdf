// Chooses, while a channel is used, with which stores its sender writes into the slots. The best kind depends on how
// near the cores of both ends are to each other, which may change while a program runs.
//
// The sender times some of its uses of slots and asks the receiver, by a mark in the line of the slot's flag, to time
// how long it reads them. The receiver writes that time beside `released`. The sum of both times decides.
#pragma once

#include <atomic>
#include <cstdint>

#include "onehop/channel.h"
#include "onehop/store_decision.h"

namespace onehop::detail {

// Messages of at most this many bytes keep the kind of stores that the tuning names.
inline constexpr std::int64_t longest_fixed_message = 4096;

// Whether the sender of a message may change between this kind and another one.
[[nodiscard]] bool stores_adapt(StoreKind usual, std::int64_t bytes) noexcept;

// A receiver's answer: the low half of the number of a use, and for how many nanoseconds it read the slot.
[[nodiscard]] constexpr std::uint64_t reading_time(std::uint64_t use, double seconds) noexcept {
  constexpr double most = 4e9;  // nanoseconds
  const double ns = seconds * 1e9 < most ? seconds * 1e9 : most;
  return use << 32U | static_cast<std::uint32_t>(ns);
}

// The sender's state.
class AdaptiveStores {
 public:
  AdaptiveStores(StoreKind usual, int slots, const std::atomic<std::uint64_t>& answer);

  // A use of a slot begins; they are counted from 1. Returns the kind of its stores.
  [[nodiscard]] StoreKind begin(std::uint64_t use) noexcept;
  // Whether storing and reading are timed in this use.
  [[nodiscard]] bool times() const noexcept { return times_; }
  // Storing a part of the slot took so long.
  void stored(double seconds) noexcept { seconds_ += seconds; }

  [[nodiscard]] StoreKind chosen() const noexcept { return decision_.chosen(); }

 private:
  void collect() noexcept;

  const std::atomic<std::uint64_t>& answer_;
  StoreDecision decision_;
  int slots_;
  StoreKind kind_;
  bool times_ = false;
  bool answers_ = true;  // whether the receiver reads slots in a way that can be timed
  double seconds_ = 0;
  // The use whose answer is awaited; 0: none.
  std::uint64_t awaited_ = 0;
  StoreKind awaited_kind_;
  std::uint64_t uses_since_ = 0;
};

}  // namespace onehop::detail
