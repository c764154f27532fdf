#include "waiting.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace onehop::detail {

void Waiting::far_barrier() noexcept { syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

void Waiting::judge(const WaitingFor& waiting, const Absence& absence) {
  const std::string rank = "rank " + std::to_string(group_.rank);
  const int lost = absence.lost;
  if (lost >= 0) {
    group_.own_page().saw_lost.store(static_cast<std::uint32_t>(lost) + 1, std::memory_order_release);
    throw PeerLost(lost, "rank " + std::to_string(lost) + " (process " +
                             std::to_string(group_.pages[static_cast<std::size_t>(lost)].pid) + ") has ended; " + rank +
                             " was waiting for rank " + std::to_string(waiting.peer) + " in " + waiting.what +
                             "; see the output of rank " + std::to_string(lost) + " for the reason");
  }
  if (absence.closed) {
    throw PeerLost(waiting.peer, "rank " + std::to_string(waiting.peer) + " has closed its group while " + rank +
                                     " still waits for it in " + waiting.what +
                                     "; do all ranks make the same number of steps?");
  }
  if (!deadline_) deadline_.emplace(group_.timeout);
  deadline_->check([&] { return rank + " waited for rank " + std::to_string(waiting.peer) + " in " + waiting.what; });
}

}  // namespace onehop::detail
