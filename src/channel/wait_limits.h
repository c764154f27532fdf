// The numbers of the tuning that the waiting loop reads.
#pragma once

namespace onehop::detail {

struct WaitLimits {
  int spins = 300;
  int spins_oversubscribed = 2;
  int yields = 20;
};

inline WaitLimits wait_limits;

// Whether waits of this thread sleep after one yield; see onehop/wait.h.
inline thread_local constinit bool sleep_early = false;

}  // namespace onehop::detail
