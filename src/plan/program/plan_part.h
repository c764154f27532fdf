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
#include "src/plan/direct/direct_exchange.h"
#include "src/schedule/bit_permutation.h"

namespace onehop::detail {

using Transfers = std::vector<const Transfer*>;

// The transfers of one round, sorted by this rank's part in them; in the order of the schedule within each, but for
// exact exchanges.
struct RoundPart {
  std::map<int, Transfers> to;
  std::map<int, Transfers> from;
  Transfers own;
  // By peer: how many transfers are in exact exchange with a transfer of the message in the other direction. They lead
  // both messages, in the same order, whatever the order of the schedule.
  std::map<int, std::size_t> exchanged;
  // For a permutation of index bits: its steps, and the transfers of its exchange, to which the above then point.
  std::optional<PermutationSteps> steps;
  std::vector<Transfer> exchange;
  PlanCounters moved;              // data that crosses no channel
  std::vector<CycleGroup> direct;  // cycles that need no messages
};

// How many transfers lead the messages to and from a peer because they are in exact exchange.
[[nodiscard]] inline std::size_t exchanged_with(int peer, const RoundPart& part) {
  const auto found = part.exchanged.find(peer);
  return found == part.exchanged.end() ? 0 : found->second;
}

// Throws BadInput if the arguments of a plan do not fit each other, as far as this rank can tell.
void check_arguments(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
                     const PlanOptions& options);

// Returns one part per round, which points into `schedule`. Throws BadInput, naming the invalid transfer, and if two
// transfers of a round write the same element of this rank and do not both combine: its value would depend on which
// arrives last.
[[nodiscard]] std::vector<RoundPart> sort_transfers(const Schedule& schedule, int rank);

// A hash of the permutations of all rounds, to compare between ranks; 0: no round is a permutation.
[[nodiscard]] std::uint64_t permutations_of(const Schedule& schedule);

// One channel per peer and direction, for all rounds.
struct Lane {
  std::int64_t bytes = 0;       // length of the longest message
  std::int64_t unit_bytes = 1;  // length of the longest part that cannot be cut
  std::uint64_t signature = 0xcbf29ce484222325;
  bool permutes = false;      // some message belongs to a permutation of index bits
  bool side_by_side = false;  // some message has elements in the cache lines of messages to other ranks
};

// Bytes on the wire of the smallest part into which a transfer of such elements can be cut.
[[nodiscard]] std::int64_t unit_bytes(const ArraySpec& array, Codec codec);

// Enlarges the lane for a message of these transfers.
void add_message(Lane& lane, const Schedule& schedule, std::size_t round, const Transfers& transfers);

// The channel of a lane.
[[nodiscard]] ChannelSpec spec_for(ChannelSpec::Direction direction, int peer, const Lane& lane,
                                   const PlanOptions& options, bool between_machines);

}  // namespace onehop::detail
