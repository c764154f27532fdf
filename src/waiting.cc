#include "waiting.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace onehop::detail {

void Waiting::far_barrier() noexcept { syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

Waiting::Ends Waiting::look_for_ends(int peer) {
  call_interrupt_check();
  const bool watched = peer >= 0 && peer != group_.rank && group_.shares_memory(peer);
  return {group_.lost_rank(),
          watched && group_.pages[static_cast<std::size_t>(peer)].page->left.load(std::memory_order_acquire) != 0};
}

void Waiting::report(const Ends& ends, const WaitingFor& waiting) {
  const std::string rank = "rank " + std::to_string(group_.rank);
  const int lost = ends.lost;
  if (lost >= 0) {
    group_.own_page().saw_lost.store(static_cast<std::uint32_t>(lost) + 1, std::memory_order_release);
    throw PeerLost(lost, "rank " + std::to_string(lost) + " (process " +
                             std::to_string(group_.pages[static_cast<std::size_t>(lost)].pid) + ") has ended; " + rank +
                             " was waiting for rank " + std::to_string(waiting.peer) + " in " + waiting.what +
                             "; see the output of rank " + std::to_string(lost) + " for the reason");
  }
  if (ends.peer_left) {
    throw PeerLost(waiting.peer, "rank " + std::to_string(waiting.peer) + " has closed its group while " + rank +
                                     " still waits for it in " + waiting.what +
                                     "; do all ranks make the same number of steps?");
  }
  if (!deadline_) deadline_.emplace(group_.timeout);
  deadline_->check([&] { return rank + " waited for rank " + std::to_string(waiting.peer) + " in " + waiting.what; });
}

}  // namespace onehop::detail
