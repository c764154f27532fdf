#include "src/channel/adaptive_stores.h"

namespace onehop::detail {

namespace {

constexpr std::uint64_t timed_uses = 8;         // one of so many is timed
constexpr int before_trial = 6;                 // and each of the last ones before a trial
constexpr std::uint64_t unanswered_uses = 256;  // after which no answer is expected

constexpr StoreKind other_than(StoreKind kind) noexcept {
  return kind == StoreKind::plain ? StoreKind::nontemporal : StoreKind::plain;
}

}  // namespace

bool stores_adapt([[maybe_unused]] StoreKind usual, [[maybe_unused]] std::int64_t bytes) noexcept {
#if defined(__x86_64__)
  return bytes > longest_fixed_message && (usual == StoreKind::plain || usual == StoreKind::nontemporal);
#else
  return false;  // store.cc has one kind only
#endif
}

// The first uses of a trial are not timed: each slot was last written with the other kind. An answer may come as many
// uses later as there are slots.
AdaptiveStores::AdaptiveStores(StoreKind usual, int slots, const std::atomic<std::uint64_t>& answer)
    : answer_(answer),
      decision_(usual, other_than(usual), {.ignored = 0, .counted = 2, .longest = 4 * slots + 4}),
      slots_(slots),
      kind_(usual),
      awaited_kind_(usual) {}

StoreKind AdaptiveStores::begin(std::uint64_t use) noexcept {
  if (!answers_) return kind_;
  collect();
  kind_ = decision_.next();
  times_ = awaited_ == 0 && (decision_.begun() > 0 ? decision_.begun() > slots_
                                                   : use % timed_uses == 0 || decision_.tries_within(before_trial));
  if (times_) {
    awaited_ = use;
    awaited_kind_ = kind_;
    uses_since_ = 0;
    seconds_ = 0;
  }
  return kind_;
}

void AdaptiveStores::collect() noexcept {
  times_ = false;
  if (awaited_ == 0) return;
  const std::uint64_t answer = answer_.load(std::memory_order_relaxed);
  if (answer >> 32U == (awaited_ & 0xffffffffU)) {
    decision_.took(awaited_kind_, seconds_ + static_cast<double>(answer & 0xffffffffU) * 1e-9);
    awaited_ = 0;
  } else if (++uses_since_ > unanswered_uses) {
    answers_ = false;
    kind_ = decision_.chosen();
  }
}

}  // namespace onehop::detail
