// Rails for the messages of a schedule, host by host.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "onehop/error.h"
#include "onehop/machine/rails.h"
#include "src/base/text.h"

namespace onehop {

namespace {

using Pair = std::pair<int, int>;

// The messages of one round by their sending host, sorted by (from, to).
std::map<int, std::vector<RailMessage>> messages_by_host(const Schedule& schedule, const Round& round,
                                                         std::span<const int> hosts) {
  std::map<Pair, std::int64_t> bytes;
  for (const Transfer& transfer : round.transfers) {
    const Pair pair(transfer.from.rank, transfer.to.rank);
    for (const int rank : {pair.first, pair.second}) {
      if (rank >= 0 && rank < schedule.ranks) continue;
      throw BadInput("expected ranks from 0 to " + std::to_string(schedule.ranks - 1) + " in the schedule, found " +
                     std::to_string(rank));
    }
    if (hosts[static_cast<std::size_t>(pair.first)] == hosts[static_cast<std::size_t>(pair.second)]) continue;
    bytes[pair] += schedule.bytes(transfer);
  }
  std::map<int, std::vector<RailMessage>> result;
  for (const auto& [pair, sum] : bytes) {
    if (sum > 0) result[hosts[static_cast<std::size_t>(pair.first)]].push_back({pair.first, pair.second, sum});
  }
  return result;
}

// The sizes, and which messages have the same sender: all that a choice depends on.
std::vector<std::int64_t> shape_of(const std::vector<RailMessage>& messages) {
  std::vector<std::int64_t> shape;
  for (const RailMessage& message : messages) {
    shape.push_back(message.bytes);
    shape.push_back(message.from - messages.front().from);
  }
  return shape;
}

// The assignments of another host with the same shape, with the ranks of this one.
void append_renamed(const std::vector<RailAssignment>& known, const std::vector<RailMessage>& messages,
                    std::vector<RailAssignment>& round) {
  std::size_t message = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0 && known[i].first_byte == 0) ++message;
    RailAssignment piece = known[i];
    piece.from = messages[message].from;
    piece.to = messages[message].to;
    round.push_back(piece);
  }
}

}  // namespace

std::vector<std::vector<RailAssignment>> assign_rails(const Schedule& schedule, std::span<const int> hosts,
                                                      const RailOptions& options) {
  if (std::cmp_not_equal(hosts.size(), schedule.ranks)) {
    throw BadInput("expected the host of each of the " + base::counted(schedule.ranks, "rank") + ", found " +
                   base::counted(hosts.size(), "host"));
  }
  static_cast<void>(
      assign_rails(std::span<const RailMessage>(), options));  // refuses wrong options of an empty schedule
  std::map<std::vector<std::int64_t>, std::vector<RailAssignment>> known;
  std::vector<std::vector<RailAssignment>> rounds;
  for (const Round& round : schedule.rounds) {
    std::vector<RailAssignment>& assignments = rounds.emplace_back();
    for (const auto& [host, messages] : messages_by_host(schedule, round, hosts)) {
      const auto [place, is_new] = known.try_emplace(shape_of(messages));
      if (is_new) place->second = assign_rails(messages, options).assignments;
      append_renamed(place->second, messages, assignments);
    }
    std::ranges::sort(assignments, {},
                      [](const RailAssignment& piece) { return std::tuple(piece.from, piece.to, piece.first_byte); });
  }
  return rounds;
}

}  // namespace onehop
