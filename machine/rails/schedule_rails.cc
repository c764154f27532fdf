// Rails for the messages of a schedule, host by host.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "onehop/error.h"
#include "onehop/machine/rails.h"
#include "src/base/text.h"

namespace onehop {

namespace {

using Pair = std::pair<int, int>;

// The messages of one round of a schedule: one for each pair of ranks.
std::vector<RailMessage> messages_of(const Schedule& schedule, const Round& round) {
  std::map<Pair, std::int64_t> bytes;
  for (const Transfer& transfer : round.transfers) {
    for (const int rank : {transfer.from.rank, transfer.to.rank}) {
      if (rank >= 0 && rank < schedule.ranks) continue;
      throw BadInput("expected ranks from 0 to " + std::to_string(schedule.ranks - 1) + " in the schedule, found " +
                     std::to_string(rank));
    }
    bytes[{transfer.from.rank, transfer.to.rank}] += schedule.bytes(transfer);
  }
  std::vector<RailMessage> messages;
  for (const auto& [pair, sum] : bytes) messages.push_back({pair.first, pair.second, sum});
  return messages;
}

// The messages that leave their host, by the sending host.
std::map<int, std::vector<RailMessage>> messages_by_host(std::span<const RailMessage> messages,
                                                         std::span<const int> hosts) {
  std::map<int, std::vector<RailMessage>> result;
  for (const RailMessage& message : messages) {
    for (const int rank : {message.from, message.to}) {
      if (rank >= 0 && std::cmp_less(rank, hosts.size())) continue;
      throw BadInput("expected messages of ranks from 0 to " + std::to_string(std::ssize(hosts) - 1) +
                     ", which have hosts, found rank " + std::to_string(rank));
    }
    const int from = hosts[static_cast<std::size_t>(message.from)];
    if (from == hosts[static_cast<std::size_t>(message.to)] || message.bytes == 0) continue;
    result[from].push_back(message);
  }
  for (auto& [host, list] : result) {
    std::ranges::stable_sort(list, {}, [](const RailMessage& message) { return Pair(message.from, message.to); });
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

std::vector<std::vector<RailAssignment>> assign_rails(std::span<const std::vector<RailMessage>> rounds,
                                                      std::span<const int> hosts, const RailOptions& options) {
  static_cast<void>(assign_rails(std::span<const RailMessage>(), options));  // refuses wrong options without messages
  std::map<std::vector<std::int64_t>, std::vector<RailAssignment>> known;
  std::vector<std::vector<RailAssignment>> result;
  for (const std::vector<RailMessage>& round : rounds) {
    std::vector<RailAssignment>& assignments = result.emplace_back();
    for (const auto& [host, messages] : messages_by_host(round, hosts)) {
      const auto [place, is_new] = known.try_emplace(shape_of(messages));
      if (is_new) place->second = assign_rails(messages, options).assignments;
      append_renamed(place->second, messages, assignments);
    }
    std::ranges::stable_sort(assignments, {}, [](const RailAssignment& piece) { return Pair(piece.from, piece.to); });
  }
  return result;
}

std::vector<std::vector<RailAssignment>> assign_rails(const Schedule& schedule, std::span<const int> hosts,
                                                      const RailOptions& options) {
  if (std::cmp_not_equal(hosts.size(), schedule.ranks)) {
    throw BadInput("expected the host of each of the " + base::counted(schedule.ranks, "rank") + ", found " +
                   base::counted(hosts.size(), "host"));
  }
  std::vector<std::vector<RailMessage>> rounds;
  for (const Round& round : schedule.rounds) rounds.push_back(messages_of(schedule, round));
  return assign_rails(rounds, hosts, options);
}

}  // namespace onehop
