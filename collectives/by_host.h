// Operations that send each number over the network only once a host, shared evenly by the ranks of the host.
//
// An all-reduce takes three steps: the ranks of each host reduce a block each, the ranks with the same block on all
// hosts reduce it between them, and the ranks of each host collect the blocks. A host then sends 2 n (H - 1) / H bytes
// of an array of n bytes on H hosts. A reduce-scatter takes the first two steps; an all-gather, and a broadcast on the
// hosts that receive, the last two.
//
// Elements are combined in the order of ranks within each host, and the results of the hosts in the order of the hosts'
// first ranks: the same bits on every rank and in every run, but not those of the other algorithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/operation.h"
#include "onehop/collectives/collectives.h"
#include "onehop/group.h"

namespace onehop::collectives::detail {

// The groups and channels of the steps.
class HostStages {
 public:
  // Collective. Null unless there are several hosts with the same number of ranks, two or more, on each.
  [[nodiscard]] static std::unique_ptr<HostStages> make(const Group& group, const CollectivesOptions& options);

  // Prepare a valid all-reduce of the whole group. The codec is used between hosts only.
  [[nodiscard]] HostSteps allreduce(const Reduction& reduction) const;
  // The same for other valid operations, if the ranks of each host have successive numbers. `block`: of each rank.
  [[nodiscard]] bool in_blocks() const noexcept { return in_blocks_; }
  [[nodiscard]] HostSteps reduce_scatter(const Reduction& block) const;
  [[nodiscard]] HostSteps allgather(std::int64_t block_bytes) const;
  [[nodiscard]] HostSteps broadcast(std::int64_t bytes, int root) const;
  // The ranks of each host, hosts in the order of their first ranks.
  [[nodiscard]] const std::vector<std::vector<int>>& hosts() const noexcept { return hosts_; }
  // How many messages leave a host when every rank sends one to every other rank.
  [[nodiscard]] std::int64_t messages_from_host() const noexcept;
  // Of all steps of this rank so far.
  [[nodiscard]] CollectivesCounters counters() const noexcept;
  [[nodiscard]] std::int64_t staging_bytes() const noexcept;

 private:
  HostStages(const Group& group, const CollectivesOptions& options, std::vector<std::vector<int>> hosts,
             std::vector<int> on_host, std::vector<int> across);
  struct Reducer;
  // Run a step among the ranks of this host, or among those with this rank's number on all hosts.
  template <class Step>
  void inside(const Step& step) const;
  template <class Step>
  void across(const Step& step) const;
  [[nodiscard]] std::vector<std::byte> of_hosts(std::int64_t bytes) const {  // memory of so many bytes for each host
    return std::vector<std::byte>(across_.size() * static_cast<std::size_t>(bytes));
  }

  Group group_;
  std::vector<std::vector<int>> hosts_;
  std::vector<int> on_host_;  // in the numbers of the whole group
  std::vector<int> across_;
  bool in_blocks_ = false;
  Collectives local_;
  Collectives between_;
};

}  // namespace onehop::collectives::detail
