// Waiting for a colour: spin, give way, then sleep on the own doorbell; look after the peers meanwhile, and drive the transports
// that need it: whatever is waited for, other messages of this rank may be under way (docs/design/protocol.md).
#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>
#include <string>

#include "src/channel/wait_limits.h"
#include "src/group/driven.h"
#include "src/group/group_state.h"
#include "src/group/liveness.h"

namespace onehop::detail {

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What is waited for, for messages.
struct WaitingFor {
  int peer = -1;
  std::string what;  // "channel 0 -> 1 (tag 3)"
};

// One wait: idle() is called after each look that found nothing. Starting one costs nothing.
class Waiting {
 public:
  // `polls`: something must be called for progress between the looks, so the rank may not sleep.
  Waiting(GroupState& group, bool polls) noexcept : group_(group), polls_(polls) {}

  // Something moved: spin again.
  void reset() noexcept {
    looks_ = 0;
    deadline_.reset();
  }

  // `ready()`: is there anything to do? `describe()`: a WaitingFor, called when something is wrong. Throws PeerLost, Timeout, or
  // what the interrupt check throws.
  template <class Ready, class Describe>
  void idle(const Ready& ready, const Describe& describe) {
    if (looks_ < spins()) [[likely]] {
      // What is just coming is seen soonest without pauses.
      if (++looks_ > looks_without_pause) pause();
      return;
    }
    const bool driven = Driven::drive_any();
    if (looks_ < spins() + yields()) {
      ++looks_;
      sched_yield();
      return;
    }
    if (polls_) {
      sched_yield();
      if (++looks_ < spins() + yields() + polls_between) return;
      looks_ -= polls_between;
    } else if (driven) {
      // For so short that nobody need be interrupted by a barrier: a wake-up that is lost costs no more than the nap.
      sleep_unless(ready, false, driven_nap);
      if (++looks_ < spins() + yields() + naps_between) return;
      looks_ -= naps_between;
    } else {
      sleep_unless(ready, group_.far_barrier, nap());
      if (ready()) return;
    }
    look_after(ready, describe);
  }

  // Looks after the peers, without waiting. Throws as idle() does, unless `ready()`.
  template <class Ready, class Describe>
  void look_after(const Ready& ready, const Describe& describe) {
    call_interrupt_check();
    const WaitingFor waiting = describe();
    const Absence absence = group_.look_at_peers(waiting.peer);
    // Only now: what a peer sent before it ended counts (docs/design/protocol.md, "When a peer dies").
    // And it may be another by now that is waited for, who has not been looked at.
    if (!ready() && describe().peer == waiting.peer) judge(waiting, absence);
  }

 private:
  static constexpr int polls_between = 512;
  static constexpr int looks_without_pause = 40;
  static constexpr double driven_nap = 0.0001;  // seconds
  static constexpr int naps_between = 200;

  template <class Ready>
  void sleep_unless(const Ready& ready, bool barrier, double seconds) {
    RankPage& own = group_.own_page();
    const std::uint32_t seen = own.bell.load(std::memory_order_acquire);
    own.sleeping.fetch_add(1, std::memory_order_seq_cst);
    if (barrier) far_barrier();
    if (!ready()) sleep_on(own, seen, seconds);
    own.sleeping.fetch_sub(1, std::memory_order_relaxed);
  }
  [[nodiscard]] int spins() const noexcept { return group_.crowded ? wait_limits.spins_crowded : wait_limits.spins; }
  [[nodiscard]] static int yields() noexcept { return wait_limits.yields; }
  [[nodiscard]] double nap() const noexcept { return group_.far_barrier ? 0.02 : 0.001; }
  // A full barrier on every running thread of every process of the group.
  static void far_barrier() noexcept;
  void judge(const WaitingFor& waiting, const Absence& absence);

  GroupState& group_;
  bool polls_;
  int looks_ = 0;
  std::optional<Deadline> deadline_;
};

}  // namespace onehop::detail
