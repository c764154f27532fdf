#include "src/group/leaving.h"

#include <stdlib.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <vector>

namespace onehop::detail {
namespace {

// The pages of a group that was closed while its process was ending.
struct Farewell {
  int rank = 0;
  std::vector<PeerPage> pages;
};

struct Groups {
  std::mutex mutex;
  pid_t process = 0;  // the owner of the lists below; a forked child starts with empty ones
  bool ending = false;
  std::set<GroupState*> open;
  std::vector<Farewell> gone;
};

Groups& groups() {
  static Groups* const all = new Groups;  // never destroyed: it is needed when the process ends
  return *all;
}

void tell_peers(int rank, std::vector<PeerPage>& pages) noexcept {
  pages[static_cast<std::size_t>(rank)].page->left.store(1, std::memory_order_release);
  for (const PeerPage& peer : pages) {
    if (peer.page != nullptr && peer.page->sleeping.load(std::memory_order_seq_cst) != 0) ring(*peer.page);
  }
}

// A process that ends with status 0 leaves its groups in order, also those that are still held. A failed one does not.
void leave_at_exit(int status, void* /*argument*/) {
  Groups& all = groups();
  const std::lock_guard guard(all.mutex);
  if ((status & 0xff) != 0 || !all.ending || all.process != getpid()) return;
  for (Farewell& group : all.gone) tell_peers(group.rank, group.pages);
  for (GroupState* const group : all.open) tell_peers(group->rank, group->pages);
}

}  // namespace

void entered(GroupState& group) {
  Groups& all = groups();
  const std::lock_guard guard(all.mutex);
  if (all.process != getpid()) {
    if (all.process == 0) ::on_exit(&leave_at_exit, nullptr);
    all.process = getpid();
    all.ending = false;
    all.open.clear();
    all.gone.clear();
  }
  all.open.insert(&group);
}

void left(GroupState& group) noexcept {
  if (group.pages.empty() || group.pages[static_cast<std::size_t>(group.rank)].page == nullptr) return;
  Groups& all = groups();
  const std::lock_guard guard(all.mutex);
  all.open.erase(&group);
  if (all.ending && all.process == getpid()) {
    all.gone.push_back({group.rank, group.pages});
  } else {
    tell_peers(group.rank, group.pages);
  }
}

void aborted(GroupState& group) noexcept {
  if (group.pages.empty() || group.pages[static_cast<std::size_t>(group.rank)].page == nullptr) return;
  std::uint32_t none = 0;  // a rank that has died before, and was reported, remains the one that all ranks name
  group.own_page().reported_lost.compare_exchange_strong(none, static_cast<std::uint32_t>(group.rank) + 1);
  tell_peers(group.rank, group.pages);
}

void process_is_ending() noexcept {
  Groups& all = groups();
  const std::lock_guard guard(all.mutex);
  if (all.process == getpid()) all.ending = true;
}

}  // namespace onehop::detail
