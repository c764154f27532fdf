// Chooses the faster of two ways, such as two kinds of stores, by timing repeated operations of the same kind and
// length; from time to time it tries the other way. Results do not depend on the choice.
#pragma once

#include <array>
#include <cstddef>
#include <limits>

#include "onehop/channel.h"

namespace onehop {

// The operations of a trial of the other way.
struct StoreTrial {
  int ignored = 1;  // its first operations, in which the caches still reflect the chosen way
  int counted = 2;  // the next ones; the fastest of them decides
  int longest = 3;  // operations that begin in the other way while no time has decided
  // Operations between trials, after several that changed nothing, and the time that ends a trial at once, in times of
  // the chosen way.
  int pause = 512;
  double abandon = 2;
};

// Between the ways 0, which is the usual one, and 1.
class Decision {
 public:
  explicit Decision(StoreTrial trial = {}) : trial_(trial) {}

  // Returns the way of the next operation.
  [[nodiscard]] std::size_t next() noexcept;
  // Records the duration, in any unit, of an operation that has ended. Not every operation has to be timed.
  void took(std::size_t way, double time) noexcept;
  // The best way so far.
  [[nodiscard]] std::size_t chosen() const noexcept { return chosen_; }
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

  StoreTrial trial_;
  std::size_t chosen_ = 0;
  std::array<double, 3> last_{never, never, never};  // latest times of the chosen way
  std::size_t count_ = 0;
  double given_up_ = never;  // time of the other way when this one was chosen
  // The trial.
  int until_trial_ = 4;
  int pause_ = 4;
  int still_to_try_ = 0;
  bool judged_ = true;
  int tried_ = 0;
  double best_tried_ = never;
};

// The same for two kinds of stores.
class StoreDecision {
 public:
  // If both are the same kind, there is no choice.
  StoreDecision(StoreKind usual, StoreKind other, StoreTrial trial = {}) : kinds_{usual, other}, decision_(trial) {}

  // Returns the store kind of the next operation. The first ones use `usual`.
  [[nodiscard]] StoreKind next() noexcept { return kinds_[has_choice() ? decision_.next() : 0]; }
  void took(StoreKind kind, double time) noexcept { decision_.took(kind == kinds_[0] ? 0 : 1, time); }
  [[nodiscard]] StoreKind chosen() const noexcept { return kinds_[decision_.chosen()]; }
  [[nodiscard]] bool tries_within(int operations) const noexcept {
    return has_choice() && decision_.tries_within(operations);
  }
  [[nodiscard]] int begun() const noexcept { return decision_.begun(); }

 private:
  [[nodiscard]] bool has_choice() const noexcept { return kinds_[0] != kinds_[1]; }

  std::array<StoreKind, 2> kinds_;
  Decision decision_;
};

}  // namespace onehop
