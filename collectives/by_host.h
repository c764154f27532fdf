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
#include <optional>
#include <vector>

#include "onehop/collectives/collectives.h"
#include "onehop/group.h"

namespace onehop::collectives::detail {

// A prepared operation by hosts.
class HostSteps {
 public:
  HostSteps() = default;
  HostSteps(const HostSteps&) = delete;
  HostSteps& operator=(const HostSteps&) = delete;
  virtual ~HostSteps() = default;
  // The arrays overlap only as the operation allows. Throws PeerLost with the rank's number in the whole group, and
  // Timeout.
  virtual void run(const std::byte* source, std::byte* result) = 0;
};

// An all-reduce by hosts.
class HostReduction final : public HostSteps {
 public:
  void run(const std::byte* source, std::byte* result) override;

 private:
  friend class HostStages;
  // The three steps for a piece of the array: ranks_per_host blocks.
  struct Steps {
    Collective reduce;
    Collective across;
    Collective gather;
    std::int64_t bytes = 0;  // of the piece
  };
  // Takes the next piece as far as the network, and completes the one before.
  void begin(Steps& steps, const std::byte* source, std::byte* result);
  // Completes the piece that is on the network.
  void end();

  std::optional<Steps> whole_;  // for each of `pieces_` pieces of equal length
  std::optional<Steps> rest_;   // for what is left
  std::int64_t pieces_ = 0;
  std::int64_t rest_bytes_ = 0;    // of the array in `rest_`
  std::vector<std::byte> padded_;  // the rest, if it has to be lengthened to blocks of equal length
  std::int64_t block_ = 0;         // this rank's number among those of its host
  Steps* on_network_ = nullptr;
  std::byte* result_ = nullptr;  // of the piece on the network
  std::optional<Group> group_;   // the whole group
  std::vector<int> on_host_;     // the ranks of this host, and those with this block, in the whole group
  std::vector<int> across_;
};

// The groups and channels of the steps.
class HostStages {
 public:
  // Collective. Null unless there are several hosts with the same number of ranks, two or more, on each.
  [[nodiscard]] static std::unique_ptr<HostStages> make(const Group& group, const CollectivesOptions& options);

  // For a valid all-reduce of the whole group. The codec is used between hosts only.
  [[nodiscard]] std::shared_ptr<HostSteps> prepare(const Reduction& reduction) const;
  // For valid operations of the whole group, if the ranks of each host have successive numbers. `block`: of each rank.
  [[nodiscard]] bool in_blocks() const noexcept { return in_blocks_; }
  [[nodiscard]] std::shared_ptr<HostSteps> prepare_reduce_scatter(const Reduction& block) const;
  [[nodiscard]] std::shared_ptr<HostSteps> prepare_allgather(std::int64_t block_bytes) const;
  [[nodiscard]] std::shared_ptr<HostSteps> prepare_broadcast(std::int64_t bytes, int root) const;
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
  [[nodiscard]] HostReduction::Steps steps(const Reduction& reduction, std::int64_t block_elements) const;

  Group group_;
  std::vector<std::vector<int>> hosts_;
  std::vector<int> on_host_;
  std::vector<int> across_;
  bool in_blocks_ = false;
  Collectives local_;
  Collectives between_;
};

}  // namespace onehop::collectives::detail
