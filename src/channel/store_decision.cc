#include "src/channel/store_decision.h"

#include <algorithm>

namespace onehop {

namespace {

constexpr double worthwhile = 0.9;
constexpr double suspicious = 1.25;

}  // namespace

std::size_t Decision::next() noexcept {
  if (still_to_try_ > 0) {
    --still_to_try_;
  } else if (--until_trial_ <= 0) {
    still_to_try_ = trial_.longest;
    judged_ = false;
    tried_ = 0;
    best_tried_ = never;
    until_trial_ = pause_;
  }
  return still_to_try_ > 0 ? 1 - chosen_ : chosen_;
}

void Decision::took(std::size_t way, double time) noexcept {
  if (way == chosen_) {
    last_[count_++ % last_.size()] = time;
    // The state of the machine may have changed: try the other way at once.
    if (count_ >= last_.size() && recent() > suspicious * given_up_) {
      given_up_ = never;
      until_trial_ = 1;
    }
    return;
  }
  if (judged_) return;  // began before the trial was judged
  if (++tried_ > trial_.ignored) best_tried_ = std::min(best_tried_, time);
  if (time > trial_.abandon * recent() || tried_ == trial_.ignored + trial_.counted) judge();
}

void Decision::judge() noexcept {
  judged_ = true;
  still_to_try_ = 0;
  const double other = recent();
  if (best_tried_ < worthwhile * other) {
    chosen_ = 1 - chosen_;
    given_up_ = other;
    last_.fill(never);
    count_ = 0;
    pause_ = 64;
  } else {
    pause_ = std::min(pause_ * 4, trial_.pause);
  }
  until_trial_ = pause_;
}

double Decision::recent() const noexcept { return *std::min_element(last_.begin(), last_.end()); }

}  // namespace onehop
