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
  StoreDecision(StoreKind usual, StoreKind other) : ways_{usual, other} {}

  // How the operation after the one that begins is to be stored. The first of all is stored as usual.
  [[nodiscard]] StoreKind next() noexcept;
  // How long the operation took, in any unit.
  void took(double time) noexcept;
  // What has been found best so far.
  [[nodiscard]] StoreKind chosen() const noexcept { return ways_[chosen_]; }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  void judge() noexcept;
  [[nodiscard]] double recent() const noexcept;

  std::array<StoreKind, 2> ways_;
  std::size_t chosen_ = 0;
  std::size_t running_ = 0;                          // the way of the operation that runs
  std::size_t upcoming_ = 0;                         // and of the next one
  std::array<double, 3> last_{never, never, never};  // times of the chosen way
  std::size_t count_ = 0;
  double given_up_ = never;  // what the other way took when this one was chosen
  // A trial: three operations the other way.
  int until_trial_ = 4;
  int pause_ = 4;
  int still_to_try_ = 0;
  int tried_ = 0;
  double best_tried_ = never;
};

// What a rank knows of operations of one kind and length.
struct StoreChoice {
  StoreKind now = StoreKind::nontemporal;
  StoreKind next = StoreKind::nontemporal;
  StoreDecision decision{StoreKind::nontemporal, StoreKind::plain};  // of rank 0
};

}  // namespace onehop::collectives::detail
