// What the parts of onehop know about a group: its ranks, who of them lives where, and how to wait for them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bootstrap.h"
#include "onehop/channel.h"
#include "onehop/group.h"
#include "rank_page.h"
#include "transport/transport.h"

namespace onehop::detail {

struct GroupState {
  GroupState() = default;
  ~GroupState();
  GroupState(const GroupState&) = delete;
  GroupState& operator=(const GroupState&) = delete;

  int rank = 0;
  int size = 1;
  std::string origin;
  double timeout = 0;  // seconds; 0: none
  std::unique_ptr<Bootstrap> bootstrap;
  // One per rank; a rank whose memory cannot be mapped here has an empty page and a reason.
  std::vector<PeerPage> pages;
  int ranks_on_host = 1;
  bool crowded = false;  // more ranks here than processors: waiting gives way at once
  // Numbers channels between each pair of ranks: the same on all ranks because open_channels is collective.
  std::uint32_t channels_opened = 0;
  std::unique_ptr<Transport> shared_memory;
  std::unique_ptr<Transport> remote;  // null: only shared memory

  [[nodiscard]] RankPage& own_page() noexcept { return *pages[static_cast<std::size_t>(rank)].page; }
};

// Joins the ranks that `bootstrap` connects to a group. Collective.
[[nodiscard]] std::shared_ptr<GroupState> make_group(int rank, int size, std::string origin,
                                                     std::unique_ptr<Bootstrap> bootstrap);

}  // namespace onehop::detail
