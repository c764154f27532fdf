#include "src/channel/adaptive_stores.h"

namespace onehop::detail {

namespace {

constexpr int before_trial = 6;    // so many uses before a trial are timed
constexpr int most_lost = 8;       // answers, before the sender asks no more
constexpr int silent_uses = 4096;  // for so many uses

// One of so many uses is timed. Looking at the clock takes as long as storing 1 KiB.
constexpr std::uint64_t timed_uses(std::int64_t bytes) noexcept {
  constexpr std::int64_t short_use = 16 << 10;
  return bytes < short_use ? 32 : 8;
}

// The kind that takes turns with the usual one: plain stores with those past the caches, and either hint (prefetch,
// demote) with plain stores. store.cc has one kind only for other processors.
constexpr StoreKind other_than([[maybe_unused]] StoreKind kind) noexcept {
#if defined(__x86_64__)
  return kind == StoreKind::plain ? StoreKind::nontemporal : StoreKind::plain;
#else
  return kind;
#endif
}

// The first uses of a trial are not timed: each slot was last written with the other kind. An answer may come as many
// uses later as there are slots.
StoreDecision decision(StoreKind usual, int slots) noexcept {
  return {usual, other_than(usual), {.ignored = 0, .counted = 2, .longest = 4 * slots + 4}};
}

// Slots begin with the usual kind of stores, so a trial of them lasts until the other kind has been tried, too, and is
// rarer. It ends early only if slots are far slower.
StoreTrial trial_of_slots(int slots) noexcept {
  return {.ignored = 0, .counted = 8, .longest = 16 * slots + 40, .pause = 4096, .abandon = 16};
}

constexpr std::size_t way_of(StoreTarget target) noexcept { return target == StoreTarget::array ? 0 : 1; }

}  // namespace

bool stores_adapt(std::int64_t bytes) noexcept { return bytes > longest_fixed_slot; }

AdaptiveStores::AdaptiveStores(StoreKind usual, int slots, std::int64_t bytes, const std::atomic<std::uint64_t>& answer,
                               const std::atomic<std::uint64_t>& released)
    : answer_(answer),
      released_(released),
      choices_{Choice{decision(usual, slots), usual}, Choice{decision(usual, slots), usual}},
      target_(trial_of_slots(slots)),
      slots_(slots),
      bytes_(bytes),
      awaited_kind_(usual) {}

bool AdaptiveStores::puts_next(std::int64_t bytes) noexcept {
  chooses_ = true;
  return (is_long(bytes) && answered_ && silent_ == 0 ? target_.next() : target_.chosen()) ==
         way_of(StoreTarget::array);
}

bool AdaptiveStores::is_timed(const Choice& choice) const noexcept {
  if (!answered_) return true;
  const StoreDecision& decision = choice.decision;
  if (decision.begun() > 0) return decision.begun() > slots_;
  return choice.counted % timed_uses(bytes_) == 0 || decision.tries_within(before_trial) ||
         (chooses_ && target_.tries_within(before_trial));
}

StoreKind AdaptiveStores::begin(std::uint64_t use, std::int64_t bytes, StoreTarget target) noexcept {
  Choice& choice = of(target);
  times_ = false;
  if (!is_long(bytes)) return choice.kind;
  ++choice.counted;
  collect();
  const StoreDecision& decision = choice.decision;
  if (silent_ > 0) {
    --silent_;
    return choice.kind = decision.chosen();
  }
  if (answered_) choice.kind = choice.decision.next();
  if (awaited_ != 0) return choice.kind;
  times_ = is_timed(choice);
  if (times_) {
    awaited_ = use;
    awaited_kind_ = choice.kind;
    awaited_target_ = target;
    seconds_ = 0;
  }
  return choice.kind;
}

void AdaptiveStores::collect() noexcept {
  // The answer is complete when the use is released: the receiver adds to it part by part.
  if (awaited_ == 0 || released_.load(std::memory_order_acquire) < awaited_) return;
  const std::uint64_t answer = answer_.load(std::memory_order_relaxed);
  if (answer >> 32U == (awaited_ & 0xffffffffU)) {
    const double time = seconds_ + static_cast<double>(answer & 0xffffffffU) * 1e-9;
    StoreDecision& decision = of(awaited_target_).decision;
    // Trials of another kind of stores say nothing about the target.
    if (awaited_kind_ == decision.chosen()) target_.took(way_of(awaited_target_), time);
    decision.took(awaited_kind_, time);
    answered_ = true;
    lost_ = 0;
  } else if (++lost_ == most_lost) {
    lost_ = 0;
    silent_ = silent_uses;
  }
  awaited_ = 0;
}

}  // namespace onehop::detail
