// Waits for a flag: spins, yields the processor, then sleeps on the rank's doorbell. Every wait also checks that the
// peers are alive, and drives the transports that progress only when called, because other messages of this rank may be
// under way (docs/design/protocol.md).
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/base/cpu.h"
#include "src/base/trace.h"
#include "src/channel/wait_limits.h"
#include "src/group/driven.h"
#include "src/group/group_state.h"
#include "src/group/liveness.h"

namespace onehop::detail {

// The peer and the channel that a rank waits for, as error messages name them.
struct WaitingFor {
  int peer = -1;
  std::string what;  // "channel 0 -> 1 (tag 3)"
};

// One wait. Call idle() after each poll that found nothing. The constructor costs nothing.
class Waiting {
 public:
  // `polls`: the caller must make progress between two polls, so the rank may not sleep.
  Waiting(GroupState& group, bool polls) noexcept : group_(group), polls_(polls) {}
  ~Waiting() {
    if (noted_) [[unlikely]]
      forget();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // Starts to spin again. Call it when something has moved.
  void reset() noexcept {
    failed_polls_ = 0;
    deadline_.reset();
    if (noted_) [[unlikely]]
      forget();
  }

  // Spins, yields or sleeps, depending on how often it was called. `ready()` returns whether there is anything to do;
  // `describe()` returns a WaitingFor. Throws PeerLost, Timeout, or the exception of the interrupt check.
  template <class Ready, class Describe>
  void idle(const Ready& ready, const Describe& describe) {
    if (trace::is_on()) [[unlikely]]
      note(describe);
    if (failed_polls_ < spins()) [[likely]] {
      if (++failed_polls_ > wait_limits.polls_without_pause) cpu::pause();
      return;
    }
    const bool driven = is_turn_to_drive() ? Driven::drive_any() : Driven::exists();
    if (failed_polls_ < spins() + yields()) {
      ++failed_polls_;
      sched_yield();
      return;
    }
    if (polls_) {
      sched_yield();
      if (++failed_polls_ < spins() + yields() + polls_per_liveness_check) return;
      failed_polls_ -= polls_per_liveness_check;
    } else if (driven) {
      // The nap is so short that it needs no process barrier: a lost wake-up costs at most the rest of the nap.
      sleep_unless(ready, false, driven_nap);
      if (++failed_polls_ < spins() + yields() + naps_per_liveness_check) return;
      failed_polls_ -= naps_per_liveness_check;
    } else {
      sleep_unless(ready, group_.process_barrier, nap());
      if (ready()) return;
    }
    check_peers(ready, describe);
  }

  // Checks for interrupts, lost peers and the time limit, without waiting. Throws as idle() does, unless `ready()`.
  template <class Ready, class Describe>
  void check_peers(const Ready& ready, const Describe& describe) {
    call_interrupt_check();
    const WaitingFor waiting = describe();
    const PeerStatus status = group_.poll_peers(waiting.peer);
    // Read `ready()` only after the peers: a message that a peer sent before it ended counts (docs/design/protocol.md,
    // "When a peer dies"). If this rank waits for another peer by now, that peer has not been polled, so the status
    // says nothing about it.
    if (ready() || describe().peer != waiting.peer) return;
    if ((status.lost >= 0 || status.closed >= 0) && ready_after_driving(ready)) return;
    judge(waiting, status);
  }

 private:
  static constexpr int polls_per_liveness_check = 512;
  static constexpr int polls_per_drive = 16;
  static constexpr double driven_nap = 0.0001;  // seconds
  static constexpr int naps_per_liveness_check = 200;
  static constexpr int polls_before_name = 30;
  // Seconds. At the time limit, a rank elsewhere that has been silent for so long counts as lost; it gives signs of
  // life every half second. And how long a rank waits beyond the limit for others to report such a rank.
  static constexpr double silence_that_counts = 1.8;
  static constexpr double seconds_for_reports = 1.2;
  static constexpr double seconds_to_arrive = 0.05;

  // A message that a peer sent over a network before it left may still be on its way through the system and the
  // library, although this rank can see already that the peer has left.
  template <class Ready>
  static bool ready_after_driving(const Ready& ready) {
    if (!Driven::drive_any()) return false;
    for (const double end = base::steady_seconds() + seconds_to_arrive; base::steady_seconds() < end;) {
      if (ready()) return true;
      sched_yield();
      Driven::drive_any();
    }
    return ready();
  }

  template <class Ready>
  void sleep_unless(const Ready& ready, bool barrier, double seconds) {
    RankPage& own = group_.own_page();
    const std::uint32_t seen = own.bell.load(std::memory_order_acquire);
    own.sleeping.fetch_add(1, std::memory_order_seq_cst);
    if (barrier) process_barrier();
    if (!ready()) sleep_on(own, seen, seconds);
    own.sleeping.fetch_sub(1, std::memory_order_relaxed);
  }
  // Driving takes longer than yielding, and another rank of the same core waits for it. Naps are longer still.
  [[nodiscard]] bool is_turn_to_drive() const noexcept {
    const bool naps = !polls_ && failed_polls_ >= spins() + yields();
    return !group_.oversubscribed || naps || failed_polls_ % polls_per_drive == 0;
  }
  [[nodiscard]] int spins() const noexcept {
    return group_.oversubscribed ? wait_limits.spins_oversubscribed : wait_limits.spins;
  }
  [[nodiscard]] static int yields() noexcept {
    return sleep_early ? std::min(1, wait_limits.yields) : wait_limits.yields;
  }
  [[nodiscard]] double nap() const noexcept { return group_.process_barrier ? 0.02 : 0.001; }
  // A full barrier on every running thread of every process of the group.
  static void process_barrier() noexcept;
  void judge(const WaitingFor& waiting, const PeerStatus& status);
  [[noreturn]] void throw_silent(int silent, const WaitingFor& waiting);
  // Shows this wait to `onehop status`, until forget().
  void show(const WaitingFor& waiting) noexcept;
  // Notes when this wait began, for the trace of the run; and whom it waits for, once it has taken a while.
  template <class Describe>
  void note(const Describe& describe) {
    if (!noted_ || traced_begin_ == 0) {
      prepare_notes();
      traced_begin_ = trace::now();
      traced_peer_ = -1;
    } else if (traced_peer_ < 0 && failed_polls_ >= std::min(spins(), polls_before_name)) {
      const WaitingFor waiting = describe();
      if (waiting.peer < 0) return;
      traced_name_ = trace::name_of(waiting.what);
      traced_peer_ = group_.world_rank(waiting.peer);
    }
  }
  void prepare_notes() noexcept {
    if (noted_) return;
    noted_ = true;
    shown_ = nullptr;
    traced_begin_ = 0;
  }
  // Ends what show() and note() have begun.
  void forget() noexcept;

  GroupState& group_;
  bool polls_;
  int failed_polls_ = 0;
  std::optional<Deadline> deadline_;
  bool noted_ = false;  // the rest is valid
  WaitRecord* shown_;
  int shown_peer_;
  std::int64_t traced_begin_;  // 0: not traced
  std::uint32_t traced_name_;
  int traced_peer_;
};

}  // namespace onehop::detail
