#include "src/group/leaving.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
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

// Notes on this rank's page that `rank` was lost. An earlier note remains if it still holds.
void note(GroupState& group, int rank) {
  if (const int noted = group.missed_by(group.rank); noted >= 0 && group.is_gone(noted)) return;
  group.own_page().missed.store(static_cast<std::uint32_t>(rank) + 1, std::memory_order_release);
}

// The rank of a group with a number in the world; -1: none but perhaps this one.
int rank_of_world(const GroupState& group, int number) {
  for (int r = 0; r < group.size; ++r) {
    if (r != group.rank && group.world_rank(r) == number) return r;
  }
  return -1;
}

// The rank of a group that was not split from the same world, by its process.
int rank_of_process(const GroupState& group, const PeerPage& process) {
  for (int r = 0; r < group.size; ++r) {
    const PeerPage& peer = group.pages[static_cast<std::size_t>(r)];
    if (r != group.rank && peer.pid == process.pid && *peer.host == *process.host) return r;
  }
  return -1;
}

// A rank that fails after another one has died fails because of it, as far as its peers know.
void note_the_dead(GroupState& group) {
  for (int r = 0; r < group.size; ++r) {
    if (r != group.rank && !group.has_left(r) && group.has_ended(r)) note(group, r);
  }
}

// A process that ends with status 0 leaves its groups in order, also those that are still held. A failed one does not.
void leave_at_exit(int status, void* /*argument*/) {
  Groups& all = groups();
  const std::lock_guard guard(all.mutex);
  if (all.process != getpid()) return;
  for (GroupState* const group : all.open) note_the_dead(*group);
  if ((status & 0xff) != 0 || !all.ending) return;
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
  group.own_page().leaving.store(1, std::memory_order_release);
  if (all.ending && all.process == getpid()) {
    note_the_dead(group);
    all.gone.push_back({group.rank, group.pages});
  } else {
    tell_peers(group.rank, group.pages);
  }
}

void note_loss(GroupState& seen_in, int lost) noexcept {
  const PeerPage& dead = seen_in.pages[static_cast<std::size_t>(lost)];
  if (dead.host == nullptr) return;  // the group is being made
  // A rank that aborted or closed this group may go on in others.
  const bool ended = seen_in.has_ended(lost);
  const int number = seen_in.world_rank(lost);
  // It may have ended because of another one, which this group does not have.
  const int elsewhere = seen_in.missed_elsewhere_by(lost);
  const int first = elsewhere < 0 || elsewhere == seen_in.world_rank(seen_in.rank) ? number : elsewhere;
  // Told once the lock is released: the lost rank, by its number in the group or in the world.
  std::vector<std::pair<std::shared_ptr<LossReports>, int>> in_groups;
  std::vector<std::pair<std::shared_ptr<LossReports>, int>> in_others;
  Groups& all = groups();
  {
    const std::lock_guard guard(all.mutex);
    if (all.process != getpid()) return;
    for (GroupState* const group : all.open) {
      const bool of_this_world = group->world == seen_in.world;
      int rank = of_this_world ? rank_of_world(*group, first) : rank_of_process(*group, dead);
      if (rank < 0 && of_this_world) {
        group->own_page().missed_elsewhere.store(static_cast<std::uint32_t>(first) + 1, std::memory_order_release);
        if (group->reports_owner != nullptr) in_others.emplace_back(group->reports_owner, first);
        rank = rank_of_world(*group, number);
      }
      if (rank < 0) continue;
      note(*group, rank);
      if (ended && group != &seen_in && group->reports_owner != nullptr)
        in_groups.emplace_back(group->reports_owner, rank);
    }
  }
  for (const auto& [told, rank] : in_groups) told->tell(rank);
  for (const auto& [told, rank] : in_others) told->tell_elsewhere(rank);
}

void report_through(GroupState& group, std::shared_ptr<LossReports> reports) {
  const std::lock_guard guard(groups().mutex);
  group.reports_owner = std::move(reports);
  group.reports.store(group.reports_owner.get(), std::memory_order_release);
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
  if (all.process != getpid()) return;
  all.ending = true;
  for (GroupState* const group : all.open) group->own_page().leaving.store(1, std::memory_order_release);
}

}  // namespace onehop::detail
