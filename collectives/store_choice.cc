#include "collectives/store_choice.h"

#include <algorithm>

namespace onehop::collectives::detail {

namespace {

constexpr int trial = 3;  // operations of a trial; the first is ignored, because the caches reflect the other kind
constexpr int longest_pause = 512;
constexpr double worthwhile = 0.9;
constexpr double abandon = 2;
constexpr double suspicious = 1.25;

}  // namespace

StoreKind StoreDecision::next() noexcept {
  running_ = upcoming_;
  if (still_to_try_ == 0 && --until_trial_ <= 0) {
    still_to_try_ = trial;
    tried_ = 0;
    best_tried_ = never;
    until_trial_ = pause_;
  }
  upcoming_ = still_to_try_ > 0 ? 1 - chosen_ : chosen_;
  still_to_try_ = std::max(still_to_try_ - 1, 0);
  return kinds_[upcoming_];
}

void StoreDecision::took(double time) noexcept {
  if (running_ == chosen_) {
    last_[count_++ % last_.size()] = time;
    // The state of the machine may have changed: try the other kind at once.
    if (count_ >= last_.size() && recent() > suspicious * given_up_) {
      given_up_ = never;
      until_trial_ = 1;
    }
    return;
  }
  ++tried_;
  if (tried_ > trial) return;  // began before the trial was judged
  if (tried_ > 1) best_tried_ = std::min(best_tried_, time);
  if (time > abandon * recent()) {
    still_to_try_ = 0;
    tried_ = trial;
  }
  if (tried_ == trial) judge();
}

void StoreDecision::judge() noexcept {
  const double other = recent();
  if (best_tried_ < worthwhile * other) {
    chosen_ = 1 - chosen_;
    given_up_ = other;
    last_.fill(never);
    count_ = 0;
    pause_ = 64;
  } else {
    pause_ = std::min(pause_ * 4, longest_pause);
  }
  until_trial_ = pause_;
}

double StoreDecision::recent() const noexcept { return *std::min_element(last_.begin(), last_.end()); }

}  // namespace onehop::collectives::detail
