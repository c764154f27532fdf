#include "src/channel/adaptive_stores.h"

namespace onehop::detail {

namespace {

constexpr std::uint64_t timed_uses = 8;  // one of so many is timed
constexpr int before_trial = 6;          // and each of the last ones before a trial
constexpr int most_lost = 8;             // answers, before the sender asks no more
constexpr int silent_uses = 4096;        // for so many uses

constexpr StoreKind other_than(StoreKind kind) noexcept {
  return kind == StoreKind::plain ? StoreKind::nontemporal : StoreKind::plain;
}

}  // namespace

bool stores_adapt([[maybe_unused]] StoreKind usual, [[maybe_unused]] std::int64_t bytes) noexcept {
#if defined(__x86_64__)
  return bytes > longest_fixed_slot && (usual == StoreKind::plain || usual == StoreKind::nontemporal);
#else
  return false;  // store.cc has one kind only
#endif
}

// The first uses of a trial are not timed: each slot was last written with the other kind. An answer may come as many
// uses later as there are slots.
AdaptiveStores::AdaptiveStores(StoreKind usual, int slots, std::int64_t bytes, const std::atomic<std::uint64_t>& answer,
                               const std::atomic<std::uint64_t>& released)
    : answer_(answer),
      released_(released),
      decision_(usual, other_than(usual), {.ignored = 0, .counted = 2, .longest = 4 * slots + 4}),
      slots_(slots),
      bytes_(bytes),
      kind_(usual),
      awaited_kind_(usual) {}

StoreKind AdaptiveStores::begin(std::uint64_t use, std::int64_t bytes) noexcept {
  times_ = false;
  // Plans cut messages between elements, so even the longest fragments may be a little shorter than a slot.
  if (bytes < bytes_ - bytes_ / 8) return kind_;
  ++counted_;
  collect();
  if (silent_ > 0) {
    --silent_;
    return kind_ = decision_.chosen();
  }
  if (answered_) kind_ = decision_.next();
  if (awaited_ != 0) return kind_;
  times_ = !answered_ || (decision_.begun() > 0 ? decision_.begun() > slots_
                                                : counted_ % timed_uses == 0 || decision_.tries_within(before_trial));
  if (times_) {
    awaited_ = use;
    awaited_kind_ = kind_;
    seconds_ = 0;
  }
  return kind_;
}

void AdaptiveStores::collect() noexcept {
  // The answer is complete when the use is released: the receiver adds to it part by part.
  if (awaited_ == 0 || released_.load(std::memory_order_acquire) < awaited_) return;
  const std::uint64_t answer = answer_.load(std::memory_order_relaxed);
  if (answer >> 32U == (awaited_ & 0xffffffffU)) {
    decision_.took(awaited_kind_, seconds_ + static_cast<double>(answer & 0xffffffffU) * 1e-9);
    answered_ = true;
    lost_ = 0;
  } else if (++lost_ == most_lost) {
    lost_ = 0;
    silent_ = silent_uses;
  }
  awaited_ = 0;
}

}  // namespace onehop::detail
