// The first step of building a plan's program: sorts and checks the transfers of one rank, before any channel is open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "onehop/channel.h"
#include "onehop/group.h"
#include "onehop/plan.h"
#include "onehop/schedule.h"
#include "src/plan/direct_exchange.h"
#include "src/schedule/bit_permutation.h"

namespace onehop::detail {

using Transfers = std::vector<const Transfer*>;

// The transfers of one round, sorted by what this rank has to do with them; schedule order within each.
struct RoundPart {
  std::map<int, Transfers> to;
  std::map<int, Transfers> from;
  Transfers own;
  // A permutation of index bits: the above are those of its exchange; and what it moves inside the rank.
  std::optional<PermutationSteps> steps;
  std::vector<Transfer> exchange;
  PlanCounters moved;              // what crosses no channel
  std::vector<CycleGroup> direct;  // cycles that need no messages
};

// Throws BadInput where the arguments of a plan do not fit each other, as far as this rank can see.
void check_arguments(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
                     const PlanOptions& options);

// One part per round. It points into `schedule`. Throws BadInput, naming the transfer that is wrong.
[[nodiscard]] std::vector<RoundPart> sort_transfers(const Schedule& schedule, int rank);

// The same number on all ranks if their rounds permute the same bits of the same arrays; 0: none permutes any.
[[nodiscard]] std::uint64_t permutations_of(const Schedule& schedule);

// One channel per peer and direction, for all rounds.
struct Lane {
  std::int64_t bytes = 0;       // of the longest message
  std::int64_t unit_bytes = 1;  // of the longest part that cannot be cut
  std::uint64_t signature = 0xcbf29ce484222325;
  bool permutes = false;      // some message is of a permutation of index bits
  bool side_by_side = false;  // some message has elements in the cache lines of messages to other ranks
};

// The bytes on the wire of the smallest part of a transfer of such elements.
[[nodiscard]] std::int64_t unit_bytes(const ArraySpec& array, Codec codec);

// Makes the lane fit for a message of these transfers.
void add_message(Lane& lane, const Schedule& schedule, std::size_t round, const Transfers& transfers);

// The channel of a lane.
[[nodiscard]] ChannelSpec spec_for(ChannelSpec::Direction direction, int peer, const Lane& lane,
                                   const PlanOptions& options, bool between_machines);

}  // namespace onehop::detail
