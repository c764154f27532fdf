// Waiting for a colour: spin, give way, sleep on the own doorbell, and look after the peers meanwhile.
#pragma once

#include <chrono>
#include <string>

#include "group_state.h"

namespace onehop::detail {

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How one wait goes on. Made where waiting begins; step() once per look that found nothing.
class Waiting {
 public:
  // `who`: the rank that is waited for and the channel or step, for messages; called only when it is needed.
  template <class Describe>
  Waiting(GroupState& group, const Describe& who);

  // Spins or gives way. True when it is time to sleep: then call sleep() with the condition.
  [[nodiscard]] bool step() noexcept;

  // Sleeps until the doorbell rings or a while has passed, unless `ready()` holds. Looks after the peers: throws PeerLost,
  // Timeout, or what the interrupt check throws.
  template <class Ready>
  void sleep(const Ready& ready);

  // The wait cannot sleep because something must be called for progress (MPI).
  void keep_awake() noexcept { awake_ = true; }
};

}  // namespace onehop::detail
