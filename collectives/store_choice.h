// Chooses the faster of two kinds of stores by timing repeated operations of the same kind and length; from time to
// time it tries the other kind. Rank 0 decides for all ranks and says in the header of an operation how to store the
// next one of its kind. All ranks then store alike, so the time of an operation measures one kind. Results do not
// depend on the choice.
#pragma once

#include <array>
#include <cstddef>
#include <limits>

#include "onehop/channel.h"

namespace onehop::collectives::detail {

// The decision of rank 0: `next` when an operation begins, `took` when it has ended.
class StoreDecision {
 public:
  StoreDecision(StoreKind usual, StoreKind other) : kinds_{usual, other} {}

  // Returns the store kind of the operation after the one that begins. The first operation of all uses `usual`.
  [[nodiscard]] StoreKind next() noexcept;
  // Records the duration of the operation that has ended, in any unit.
  void took(double time) noexcept;
  // The best kind so far.
  [[nodiscard]] StoreKind chosen() const noexcept { return kinds_[chosen_]; }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  void judge() noexcept;
  [[nodiscard]] double recent() const noexcept;

  std::array<StoreKind, 2> kinds_;
  std::size_t chosen_ = 0;
  std::size_t running_ = 0;                          // the kind of the running operation
  std::size_t upcoming_ = 0;                         // the kind of the next one
  std::array<double, 3> last_{never, never, never};  // latest times of the chosen kind
  std::size_t count_ = 0;
  double given_up_ = never;  // time of the other kind when this one was chosen
  // A trial: three operations with the other kind.
  int until_trial_ = 4;
  int pause_ = 4;
  int still_to_try_ = 0;
  int tried_ = 0;
  double best_tried_ = never;
};

// A rank's state for operations of one kind and length.
struct StoreChoice {
  StoreKind now = StoreKind::nontemporal;
  StoreKind next = StoreKind::nontemporal;
  StoreDecision decision{StoreKind::nontemporal, StoreKind::plain};  // used on rank 0 only
};

}  // namespace onehop::collectives::detail
