// Work that touches no memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/clock.h"

namespace onehop::measure {

// Computes for about this many µs on an otherwise idle core; does nothing for 0.
class Compute {
 public:
  explicit Compute(double us) {
    if (us <= 0) return;
    constexpr std::int64_t trial = 20000;
    double best = 1e30;
    steps_ = trial;
    for (int i = 0; i < 20; ++i) {
      const double begin = base::steady_seconds();
      (*this)();
      best = std::min(best, (base::steady_seconds() - begin) * 1e6);
    }
    steps_ = static_cast<std::int64_t>(us / best * trial);
  }
  void operator()() noexcept {
    double x = sink_;  // unknown to the compiler, so that it cannot remove the loop
    for (std::int64_t i = 0; i < steps_; ++i) x = x * 0.999 + 0.001;
    sink_ = x;
  }

 private:
  std::int64_t steps_ = 0;
  volatile double sink_ = 2;
};

}  // namespace onehop::measure
