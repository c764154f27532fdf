#include "src/channel/waiting.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/group/leaving.h"

namespace onehop::detail {

void Waiting::process_barrier() noexcept { syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

void Waiting::throw_silent(int silent, const WaitingFor& waiting) {
  group_.tell_lost(silent);
  throw PeerLost(silent, group_.name_of(silent) + " cannot be reached: nothing has arrived from it of late; rank " +
                             std::to_string(group_.rank) + " was waiting for rank " + std::to_string(waiting.peer) +
                             " in " + waiting.what + " for longer than the timeout of the group; " +
                             group_.where_to_look(silent));
}

void Waiting::show(const WaitingFor& waiting) noexcept {
  prepare_notes();
  if (shown_ == nullptr) {
    for (WaitRecord& record : group_.own_page().waits) {
      if (!record.claim()) continue;
      shown_ = &record;
      break;
    }
  } else if (shown_peer_ == waiting.peer) {
    return;  // a plan may wait for one channel of the peer after another; the first one says enough
  }
  if (shown_ == nullptr) return;
  shown_peer_ = waiting.peer;
  const bool known = waiting.peer >= 0 && waiting.peer < group_.size;
  shown_->write(waiting.peer, base::steady_seconds(), known ? group_.name_of(waiting.peer) : "", waiting.what);
}

void Waiting::forget() noexcept {
  noted_ = false;
  if (shown_ != nullptr) shown_->release();
  if (traced_begin_ == 0 || traced_peer_ < 0) return;
  trace::record({.begin = traced_begin_, .end = trace::now(), .name = traced_name_, .peer = traced_peer_});
}

void Waiting::judge(const WaitingFor& waiting, const PeerStatus& status) {
  const std::string rank = "rank " + std::to_string(group_.rank);
  if (group_.own_page().left.load(std::memory_order_relaxed) != 0) {
    throw Error(rank + " has aborted this group while it was waiting for rank " + std::to_string(waiting.peer) +
                " in " + waiting.what + "; make a new group to continue");
  }
  const int lost = status.lost;
  const int gone = lost >= 0 ? lost : status.closed;
  if (const int silent = gone >= 0 ? group_.unanswered_by(gone) : -1; silent >= 0) {
    group_.own_page().unanswered.store(static_cast<std::uint32_t>(silent) + 1, std::memory_order_release);
    throw Timeout(group_.name_of(silent) + " did not answer within the timeout of the group, and " +
                  group_.name_of(gone) + " has given up because of it; " + rank + " was waiting for rank " +
                  std::to_string(waiting.peer) + " in " + waiting.what + "; is rank " + std::to_string(silent) +
                  " busy, stopped, or in another step?");
  }
  if (lost >= 0) {
    group_.tell_lost(lost);
    const char* const how = group_.has_closed(lost)      ? " has closed its group; "
                            : group_.has_ended(lost)     ? " has ended; "
                            : group_.has_left(lost)      ? " has aborted this group; "
                            : group_.shares_memory(lost) ? " has ended; "
                                                         : " has ended or cannot be reached; ";
    throw PeerLost(lost, group_.name_of(lost) + how + rank + " was waiting for rank " + std::to_string(waiting.peer) +
                             " in " + waiting.what + "; " + group_.where_to_look(lost));
  }
  if (const int closed = status.closed; closed >= 0) {
    note_loss(group_, closed);
    const std::string after =
        closed == waiting.peer ? "it" : "rank " + std::to_string(waiting.peer) + ", which has gone since,";
    // Of a rank of another machine the peer that has gone only says that it missed it.
    const bool known = group_.has_left(closed);
    throw PeerLost(closed, group_.name_of(closed) + " has closed its group" +
                               (known ? "" : ", has ended or cannot be reached") + " while " + rank +
                               " still waits for " + after + " in " + waiting.what + "; " +
                               group_.where_to_look(closed));
  }
  show(waiting);
  if (!deadline_) {
    deadline_.emplace(group_.timeout);
    group_.own_page().unanswered.store(0, std::memory_order_release);  // it goes on
  }
  const LossReports* const told = group_.reports.load(std::memory_order_acquire);
  if (group_.timeout > 0 && told != nullptr && deadline_->seconds() > group_.timeout) {
    if (const int silent = told->silent(silence_that_counts); silent >= 0) throw_silent(silent, waiting);
    // Another rank of this machine may wait for a rank elsewhere, and is about to report it.
    if (deadline_->seconds() < group_.timeout + seconds_for_reports) return;
  }
  deadline_->check([&] {
    const std::string text = rank + " waited for rank " + std::to_string(waiting.peer) + " in " + waiting.what;
    const int last = group_.end_of_waits(waiting.peer);
    if (group_.timeout > 0 && deadline_->seconds() > group_.timeout)
      group_.own_page().unanswered.store(static_cast<std::uint32_t>(last) + 1, std::memory_order_release);
    return last < 0 || last == waiting.peer ? text : text + ", which waited for rank " + std::to_string(last) + ",";
  });
}

}  // namespace onehop::detail
