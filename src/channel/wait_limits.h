// The numbers of the tuning that the waiting loop reads.
#pragma once

namespace onehop::detail {

struct WaitLimits {
  int spins = 300;
  int spins_oversubscribed = 2;
  int yields = 100;
  // The first polls of a wait, without pauses in between. Many are bad where loads that run ahead of the flag must be
  // done again when it changes, and where pauses are short (notes/messages.md, "Short messages").
  int polls_without_pause = 40;
};

inline WaitLimits wait_limits;

// Whether waits of this thread sleep after one yield; see onehop/wait.h.
inline thread_local constinit bool sleep_early = false;

}  // namespace onehop::detail
