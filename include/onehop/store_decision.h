// Chooses the faster of two kinds of stores by timing repeated operations of the same kind and length; from time to
// time it tries the other kind. Results do not depend on the choice.
#pragma once

#include <array>
#include <cstddef>
#include <limits>

#include "onehop/channel.h"

namespace onehop {

// What a trial of the other kind consists of.
struct StoreTrial {
  int ignored = 1;  // its first operations, in which the caches still reflect the chosen kind
  int counted = 2;  // the next ones; the fastest of them decides
  int longest = 3;  // operations that begin with the other kind while no time has decided
};

class StoreDecision {
 public:
  // If both are the same kind, there is no choice.
  StoreDecision(StoreKind usual, StoreKind other, StoreTrial trial = {}) : kinds_{usual, other}, trial_(trial) {}

  // Returns the store kind of the next operation. The first ones use `usual`.
  [[nodiscard]] StoreKind next() noexcept;
  // Records the duration, in any unit, of an operation that has ended. Not every operation has to be timed.
  void took(StoreKind kind, double time) noexcept;
  // The best kind so far.
  [[nodiscard]] StoreKind chosen() const noexcept { return kinds_[chosen_]; }
  // Whether a trial is running, or begins within the next `operations` operations.
  [[nodiscard]] bool tries_within(int operations) const noexcept {
    return still_to_try_ > 0 || until_trial_ <= operations;
  }
  // How many operations of the running trial have begun; 0 if none is running.
  [[nodiscard]] int begun() const noexcept { return still_to_try_ > 0 ? trial_.longest - still_to_try_ + 1 : 0; }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  void judge() noexcept;
  [[nodiscard]] double recent() const noexcept;

  std::array<StoreKind, 2> kinds_;
  StoreTrial trial_;
  std::size_t chosen_ = 0;
  std::array<double, 3> last_{never, never, never};  // latest times of the chosen kind
  std::size_t count_ = 0;
  double given_up_ = never;  // time of the other kind when this one was chosen
  // The trial.
  int until_trial_ = 4;
  int pause_ = 4;
  int still_to_try_ = 0;
  bool judged_ = true;
  int tried_ = 0;
  double best_tried_ = never;
};

}  // namespace onehop
