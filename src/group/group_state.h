// The state of a group that the parts of onehop share: its ranks, which of them run on this machine, and whether they
// are alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/group.h"
#include "src/group/bootstrap.h"
#include "src/group/forks.h"
#include "src/group/liveness.h"
#include "src/group/rank_page.h"

namespace onehop::detail {

// What poll_peers() found.
struct PeerStatus {
  int lost = -1;    // a rank that has died: its process has ended, or a peer reports it as lost; -1: none
  int closed = -1;  // the awaited rank if it has closed its group, or the rank that it missed itself; -1: it has not
  bool unsure = false;  // one of these has lost a rank that is not gone, but may be about to end
};

// Tells ranks that share no memory with this one which rank was lost, as `reported_lost` tells the others.
class LossReports {
 public:
  LossReports() = default;
  LossReports(const LossReports&) = delete;
  LossReports& operator=(const LossReports&) = delete;
  virtual ~LossReports() = default;
  // Reports to the ranks that this one is connected to the rank because of which it gives up.
  virtual void tell(int lost) noexcept = 0;
  // The same for a rank that is not in this group, by its number in the world, as `RankPage::missed_elsewhere`.
  virtual void tell_elsewhere(int lost) noexcept = 0;
  // The rank that another one has reported first; -1: none.
  [[nodiscard]] virtual int heard() const noexcept = 0;
  // What `rank` has reported by tell_elsewhere() last; -1: nothing.
  [[nodiscard]] virtual int heard_elsewhere(int rank) const noexcept = 0;
  // A rank that can no longer be reached; -1: none.
  [[nodiscard]] virtual int unreachable() const noexcept = 0;
  // A rank from which nothing has arrived for so long, though it sends signs of life; -1: none.
  [[nodiscard]] virtual int silent(double seconds) const noexcept = 0;
};

struct GroupState {
  explicit GroupState(int ranks) : size(ranks), processes(ranks), pages(static_cast<std::size_t>(ranks)) {}
  ~GroupState();
  GroupState(const GroupState&) = delete;
  GroupState& operator=(const GroupState&) = delete;

  const ProcessMark process;  // the process that made the group
  int rank = 0;
  int size;
  std::string origin;
  std::vector<int> world_ranks;  // for a split group: its ranks in the numbering of the world; else empty
  std::uint64_t world = 0;       // RankPage::group_word of the group that was not split from another one
  double timeout = 0;            // seconds; 0: none
  std::unique_ptr<Bootstrap> bootstrap;
  ProcessWatch processes;
  std::vector<PeerPage> pages;  // one per rank
  std::set<std::string> texts;  // of the pages
  // There are more ranks on this machine than processors, so a waiting rank yields at once.
  bool oversubscribed = false;
  // Every rank can run a barrier on the threads of all others (membarrier); else ranks sleep only briefly
  // (docs/design/protocol.md).
  bool process_barrier = false;
  // What interrupted a collective step on this rank (time limit, signal, the end of MPI), so that its steps no longer
  // match the others'; empty: nothing.
  std::string why_out_of_step;
  // Numbers channels; the same on all ranks because opening is collective.
  std::uint32_t channels_opened = 0;
  // Shared pointers, so that a group needs the name of a transport only.
  std::shared_ptr<Transport> shared_memory;  // made with the first channel
  std::shared_ptr<Transport> remote;         // of the bootstrap (MPI); may be null
  std::shared_ptr<Transport> ucx;            // made with the first channel that needs it
  // Between hosts, of `ucx`; null until it is made. Threads that wait read `reports`; note_loss() keeps the owner.
  std::atomic<LossReports*> reports{nullptr};
  std::shared_ptr<LossReports> reports_owner;
  std::string without_ucx;   // why it could not be made; the same on all ranks or empty on all
  bool spans_hosts = false;  // some ranks do not share memory; the same on all ranks
  bool prefers_ucx = false;  // to the bootstrap's transport

  [[nodiscard]] RankPage& own_page() noexcept { return *pages[static_cast<std::size_t>(rank)].page; }
  [[nodiscard]] bool shares_memory(int other) const {
    return pages.at(static_cast<std::size_t>(other)).page != nullptr;
  }

  // Whether a rank of this machine has closed or aborted its group.
  [[nodiscard]] bool has_left(int other) const {
    const auto& peer = pages.at(static_cast<std::size_t>(other));
    return peer.page != nullptr && peer.page->left.load(std::memory_order_acquire) != 0;
  }

  // Whether a rank of this machine has closed its group, in order.
  [[nodiscard]] bool has_closed(int other) const;

  // The number of a rank in the world that this group was split from.
  [[nodiscard]] int world_rank(int rank) const {
    return world_ranks.empty() ? rank : world_ranks[static_cast<std::size_t>(rank)];
  }
  // "rank 1 (process 7)", "rank 1 of this group (rank 3 of the world; process 7)"; between hosts "process 7 on node2"
  [[nodiscard]] std::string name_of(int other) const;
  // The number in the world of the rank that a rank lost, as its page or report says, if that one is not in this group;
  // -1: none.
  [[nodiscard]] int missed_elsewhere_by(int gone) const;

  // "see the output of rank 3 for the reason"; if that rank had lost one that is not in this group, names that one; if
  // it has closed the group in order, asks for the steps
  [[nodiscard]] std::string where_to_look(int other) const;

  // Throws Error in a forked child of the process that made the group.
  void check_process() const;

  // The bootstrap's all-gather. PeerLost names the rank that was lost first, as far as this rank knows. Throws Mismatch
  // if another rank takes part in it by refuse().
  [[nodiscard]] Gathered allgather(std::span<const std::byte> mine);
  // As detail::refuse in require_same.h.
  void refuse(std::string_view text) noexcept;

  // For a step that failed, perhaps because a rank died: throws PeerLost if one did. Polls for about 50 ms before it
  // returns, because a process loses its memory before its end becomes visible.
  void throw_if_lost(const std::string& step, int polls = 50);

  // Reports to the peers the rank because of which this rank gives up, also in the other groups of this process.
  void tell_lost(int lost) noexcept;

  // Whether the process of another rank of this machine is seen to have ended.
  [[nodiscard]] bool has_ended(int other);
  // Whether another rank has ended or left, is about to, or is on another machine, where this rank cannot see it.
  [[nodiscard]] bool is_gone(int other);
  // The rank that a rank lost, as its page says; -1: none.
  [[nodiscard]] int missed_by(int gone) const;

  // The rank, still alive, because of whose silence a rank that is gone gave up; -1: none, or this rank.
  [[nodiscard]] int unanswered_by(int gone);
  // The last of the chain of ranks of this machine of which each waits for the next, from `peer` on: the one that does
  // not answer. -1: ranks that wait for each other, or for this one.
  [[nodiscard]] int end_of_waits(int peer);

  // Checks which of the ranks on this machine are gone, and what ranks elsewhere report. Read the awaited flag after
  // this call, not before.
  [[nodiscard]] PeerStatus poll_peers(int waited_for);
  // A rank that has died, or else one that has closed its group in order or cannot be reached; -1: none.
  [[nodiscard]] int gone_rank();

 private:
  [[nodiscard]] Gathered gather(std::span<const std::byte> mine);
  [[nodiscard]] PeerStatus look_at_peers(int waited_for);
  // The rank because of which a rank that is gone has left; else that rank itself.
  [[nodiscard]] int first_gone(int gone, bool& unsure);
  // The rank that a peer names in a word of its page, which holds the rank plus one. -1: none, this rank, or a number
  // outside the group.
  [[nodiscard]] int other_rank(std::uint32_t word) const noexcept;
};

// Makes a group of the ranks that `bootstrap` connects; `world_ranks` and `world` are those of a split group.
// Collective.
[[nodiscard]] std::shared_ptr<GroupState> make_group(int rank, int size, std::string origin,
                                                     std::unique_ptr<Bootstrap> bootstrap,
                                                     std::vector<int> world_ranks = {}, std::uint64_t world = 0);

}  // namespace onehop::detail
