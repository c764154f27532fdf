// The tuning's numbers for waiting, where the waiting loop reads them.
#pragma once

namespace onehop::detail {

struct WaitLimits {
  int spins = 300;
  int spins_crowded = 2;
  int yields = 20;
};

inline WaitLimits wait_limits;

}  // namespace onehop::detail
