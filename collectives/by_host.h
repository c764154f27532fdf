// Operations that send each number over the network only once a host, shared evenly by ranks of the host.
//
// Lane l is the ranks with number l on each host; there are as many lanes as the smallest host has ranks. An all-reduce
// takes three steps: the ranks in the lanes reduce a block each from those of their host, the ranks of each lane reduce
// its block between them, and the ranks of each host collect the blocks. A host then sends 2 n (H - 1) / H bytes of an
// array of n bytes on H hosts. A reduce-scatter takes the first two steps; an all-gather, and a broadcast on the hosts
// that receive, the last two. On a host with more ranks than lanes, a further step inside it moves the blocks of its
// ranks to the shares of its lanes, or back.
//
// Elements are combined in the order of ranks within each host, and the results of the hosts in the order of the hosts'
// first ranks: the same bits on every rank and in every run, but not those of the other algorithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/operation.h"
#include "onehop/collectives/collectives.h"
#include "onehop/group.h"

namespace onehop::collectives::detail {

// The ranks of each host, hosts in the order of their first ranks.
using Hosts = std::vector<std::vector<int>>;
[[nodiscard]] Hosts ranks_by_host(const Group& group);  // collective

// The groups and channels of the steps.
class HostStages {
 public:
  // Collective. Null unless there are several hosts, one of them with two ranks or more.
  [[nodiscard]] static std::unique_ptr<HostStages> make(const Group& group, const CollectivesOptions& options,
                                                        const Hosts& hosts);

  // Whether a reduction may go by host: its mean needs equal hosts, and blocks of a codec begin where they do with
  // other algorithms. `lengths`: of the blocks of a reduce-scatter; empty: an all-reduce.
  [[nodiscard]] bool takes(const Reduction& reduction, std::span<const std::int64_t> lengths) const;
  // Prepare a valid operation of the whole group. The codec is used between hosts only. `lengths`: of each rank's
  // block, in elements or in bytes.
  [[nodiscard]] HostSteps allreduce(const Reduction& reduction) const;
  [[nodiscard]] HostSteps reduce_scatter(const Reduction& reduction, std::span<const std::int64_t> lengths) const;
  [[nodiscard]] HostSteps allgather(std::span<const std::int64_t> lengths) const;
  [[nodiscard]] HostSteps broadcast(std::int64_t bytes, int root) const;
  [[nodiscard]] const Hosts& hosts() const noexcept { return hosts_; }
  // How many messages leave the host that sends most when every rank sends one to every other rank.
  [[nodiscard]] std::int64_t messages_from_host() const;
  // What leaves it when every rank sends its block to all others, or to each its block.
  [[nodiscard]] std::int64_t most_sent(std::span<const std::int64_t> lengths, bool gathers) const noexcept;
  // Of all steps of this rank so far.
  [[nodiscard]] CollectivesCounters counters() const noexcept;
  [[nodiscard]] std::int64_t staging_bytes() const noexcept;

 private:
  using Lengths = std::vector<std::int64_t>;
  HostStages(const Group& group, const CollectivesOptions& options, const Hosts& hosts, std::size_t here,
             std::size_t own);
  struct Reducer;
  struct Shares;
  // Run a step among the ranks of this host, or, if this rank is in a lane, among those of the lane.
  template <class Step>
  void inside(const Step& step) const;
  template <class Step>
  void across(const Step& step) const;
  [[nodiscard]] const std::vector<int>& on_host() const noexcept { return hosts_[here_]; }
  [[nodiscard]] bool in_lane() const noexcept { return own_ < lanes_; }
  [[nodiscard]] bool equal_hosts() const noexcept;
  // Lengths for each rank of this host, from those of the lanes.
  [[nodiscard]] Lengths in_lanes(Lengths lengths) const;
  [[nodiscard]] Shares shares_of(std::span<const std::int64_t> lengths) const;
  // Moves consecutive elements inside this host from ranks with `from` of them each to ranks with `to`. None if equal.
  [[nodiscard]] std::optional<Collective> regroup(const Lengths& from, const Lengths& to) const;

  Group group_;
  Hosts hosts_;
  std::size_t here_;  // number of this host, and of this rank on it
  std::size_t own_;
  std::size_t lanes_;
  std::vector<int> across_;  // of this lane, in the numbers of the whole group
  bool in_blocks_ = false;   // the ranks of each host have successive numbers, from the first host on
  Collectives local_;
  std::optional<Collectives> between_;
};

}  // namespace onehop::collectives::detail
