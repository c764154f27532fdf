// Rails are the network interfaces of one host. `assign_rails` chooses a rail for every message that the ranks of a
// host send at the same time, or cuts messages, so that the busiest rail finishes as early as possible. The result is
// plain data (rail_assignment.h), which `simulate` and plans read.
//
// The choice depends on the arguments only: every rank that computes it finds the same one without communication.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "onehop/rail_assignment.h"
#include "onehop/schedule.h"

namespace onehop {

// A message that leaves a host. `to` is only passed on to the assignment.
struct RailMessage {
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;
};

// - by_rank: all messages of one rank use one rail, and the ranks take the rails in turn.
// - round_robin: the messages take the rails in turn.
// - longest_first: the messages in order of falling size, each on the rail that finishes it first.
// - optimum: the busiest rail finishes as early as possible.
enum class RailRule : std::uint8_t { by_rank, round_robin, longest_first, optimum };

[[nodiscard]] std::string_view to_string(RailRule rule);
// Throws BadInput for an unknown name.
[[nodiscard]] RailRule rail_rule_from_string(std::string_view name);

inline constexpr int max_rails = 1024;

struct RailOptions {
  std::vector<double> speeds;  // bytes per second of each rail; only their ratios matter for the choice
  RailRule rule = RailRule::optimum;
  bool cut = false;            // whether messages may be cut; with the rule `optimum` only
  std::int64_t min_piece = 1;  // the fewest bytes of a piece of a cut message
};

struct RailPlan {
  // In the order of the messages; the pieces of a message follow each other in the order of their first bytes.
  std::vector<RailAssignment> assignments;
  std::vector<std::int64_t> loads;  // bytes on each rail
  double busiest = 0;               // seconds until the last rail has finished: the largest load over speed
  // No assignment of the same kind (whole messages, or pieces) finishes earlier than this.
  double lower_bound = 0;
  bool optimal = false;  // whether `busiest` is proved to be the least possible
};

// Assigns messages that are sent at the same time through the rails of one host.
//
// The rule `optimum` is exact for up to 12 messages, and for more if many have the same size, as in a halo exchange: it
// then chooses the least busy rail over all assignments, for any speeds. Otherwise it improves the better of two
// heuristics by a local search; `lower_bound` says how far from the optimum the result can be.
//
// With `cut`, every rail finishes within `min_piece` bytes of the ideal (all bytes over all speeds) if every message
// can be cut, that is, has at least twice `min_piece` bytes. At most one cut per rail is made, but for messages that
// are too short for the cut that they need.
//
// Throws BadInput unless there are 1 to max_rails rails with positive, finite speeds, the sizes are 0 or more with a
// sum below 2^63, `min_piece` is at least 1, and `cut` comes with the rule `optimum`.
[[nodiscard]] RailPlan assign_rails(std::span<const RailMessage> messages, const RailOptions& options);

// Assigns the messages of every round that leave their host. hosts[r] is the host of rank r. Each round of the result
// is sorted by (from, to); messages inside a host, and those without bytes, use no rail and are not listed. All hosts
// have the same rails. The time depends on the number of different hosts rather than on all: hosts with the same list
// of sizes share one search.
//
// Throws BadInput for the reasons above, or if a message is from or to a rank without a host.
[[nodiscard]] std::vector<std::vector<RailAssignment>> assign_rails(std::span<const std::vector<RailMessage>> rounds,
                                                                    std::span<const int> hosts,
                                                                    const RailOptions& options);

// The same for a schedule. Everything that a rank sends to another in one round is one message.
//
// Throws BadInput for the reasons above, or unless there is one host for every rank.
[[nodiscard]] std::vector<std::vector<RailAssignment>> assign_rails(const Schedule& schedule,
                                                                    std::span<const int> hosts,
                                                                    const RailOptions& options);

}  // namespace onehop
