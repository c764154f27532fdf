// What the parts of onehop know about a group: its ranks, who of them lives where, and whether they still live.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onehop/group.h"
#include "src/group/bootstrap.h"
#include "src/group/forks.h"
#include "src/group/liveness.h"
#include "src/group/rank_page.h"

namespace onehop::detail {

// What a look at the peers found.
struct Absence {
  int lost = -1;    // a rank that has died, by its own end or by what a peer reports; -1: none
  int closed = -1;  // if the rank that is waited for has closed its group: that one, or whom it had missed before
};

struct GroupState {
  explicit GroupState(int ranks) : size(ranks), processes(ranks), pages(static_cast<std::size_t>(ranks)) {}
  ~GroupState();
  GroupState(const GroupState&) = delete;
  GroupState& operator=(const GroupState&) = delete;

  const ProcessMark process;  // that made the group
  int rank = 0;
  int size;
  std::string origin;
  std::vector<int> world_ranks;  // of a part of another group: its ranks as the world numbers them; else empty
  double timeout = 0;            // seconds; 0: none
  std::unique_ptr<Bootstrap> bootstrap;
  ProcessWatch processes;
  std::vector<PeerPage> pages;  // one per rank
  // More ranks share the processors than there are: waiting gives way at once.
  bool crowded = false;
  // Every rank here can run a barrier on all the others' threads; else nobody may sleep for long (docs/design/protocol.md).
  bool far_barrier = false;
  // A collective step was broken off here (a time limit, an interrupt): the ranks are not in step any more.
  bool out_of_step = false;
  // Numbers channels; the same on all ranks because opening is collective.
  std::uint32_t channels_opened = 0;
  // Shared pointers, so that a group needs the name of a transport only.
  std::shared_ptr<Transport> shared_memory;  // made with the first channel
  std::shared_ptr<Transport> remote;         // null: shared memory only

  [[nodiscard]] RankPage& own_page() noexcept { return *pages[static_cast<std::size_t>(rank)].page; }
  [[nodiscard]] bool shares_memory(int other) const {
    return pages.at(static_cast<std::size_t>(other)).page != nullptr;
  }

  // "rank 1 (process 7)", "rank 1 of this group (rank 3 of the world; process 7)"
  [[nodiscard]] std::string name_of(int other) const;
  // "see the output of rank 3 for the reason"
  [[nodiscard]] std::string where_to_look(int other) const;

  // Throws Error in a fork's child of the process that made the group.
  void check_process() const;

  // The bootstrap's all-gather. PeerLost names the rank that was lost first, as far as anybody here knows.
  [[nodiscard]] Gathered allgather(std::span<const std::byte> mine);

  // For steps that failed and may have done so because a rank died meanwhile: throws PeerLost if one did. Takes a moment if
  // none did, since the memory of a process goes before its end can be seen.
  void throw_if_lost(const std::string& step);

  // Makes known to the others because of whom this rank gives up.
  void tell_lost(int lost) noexcept {
    own_page().saw_lost.store(static_cast<std::uint32_t>(lost) + 1, std::memory_order_release);
  }

  // Who of those that share memory with this rank is gone. Look at the colour that is waited for after this, not before.
  [[nodiscard]] Absence look_at_peers(int waited_for);
  // The rank of these that has died, or else one that has closed its group in order; -1: all are there.
  [[nodiscard]] int gone_rank();
};

// Joins the ranks that `bootstrap` connects to a group. Collective.
[[nodiscard]] std::shared_ptr<GroupState> make_group(int rank, int size, std::string origin,
                                                     std::unique_ptr<Bootstrap> bootstrap,
                                                     std::vector<int> world_ranks = {});

}  // namespace onehop::detail
