// Rails for the messages of traffic.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "onehop/error.h"
#include "onehop/machine/simulate.h"
#include "src/base/text.h"

namespace onehop {
namespace {

using Pair = std::pair<int, int>;
using Assignments = std::span<const std::vector<RailAssignment>>;

std::string text(std::size_t number) { return std::to_string(number); }

std::string text(const Pair& pair) {
  return "from rank " + std::to_string(pair.first) + " to rank " + std::to_string(pair.second);
}

// Whether pieces follow each other in their order. A piece at byte 0 begins another message.
bool follow_each_other(std::span<const RailAssignment> pieces) {
  std::int64_t next = 0;
  return std::ranges::all_of(pieces, [&next](const RailAssignment& piece) {
    if (piece.first_byte != 0 && piece.first_byte != next) return false;
    next = piece.first_byte + std::min(piece.bytes, std::numeric_limits<std::int64_t>::max() - piece.first_byte);
    return true;
  });
}

// Throws BadInput unless the pieces between two ranks follow each other: in their order, or, of one message, in
// another.
void check_places(std::vector<RailAssignment> pieces, std::size_t round) {
  if (follow_each_other(pieces)) return;
  std::ranges::sort(pieces, {}, [](const RailAssignment& one) { return std::pair(one.first_byte, one.bytes); });
  if (follow_each_other(pieces)) return;
  throw BadInput("rails: expected pieces of the message " + text(Pair(pieces.front().from, pieces.front().to)) +
                 " in round " + text(round) + " that begin at byte 0 and follow each other, found other first bytes");
}

// The pieces of each message of a round.
std::map<Pair, std::vector<RailAssignment>> pieces_of(const Traffic& traffic, std::size_t round,
                                                      Assignments assignments) {
  std::map<Pair, std::vector<RailAssignment>> pieces;
  const auto add = [&](const std::vector<RailAssignment>& list) {
    std::map<Pair, std::vector<RailAssignment>> of_list;
    for (const RailAssignment& one : list) {
      if (one.rail < 0 || one.rail >= max_rails || one.bytes < 0) {
        throw BadInput("rails: expected rails from 0 to " + std::to_string(max_rails - 1) +
                       " and 0 bytes or more, found rail " + std::to_string(one.rail) + " and " +
                       std::to_string(one.bytes) + " bytes " + text(Pair(one.from, one.to)));
      }
      of_list[{one.from, one.to}].push_back(one);
    }
    for (const auto& [pair, found] : of_list) {
      check_places(found, round);
      pieces[pair].insert(pieces[pair].end(), found.begin(), found.end());
    }
  };
  if (assignments.size() == traffic.rounds.size()) {
    add(assignments[round]);
  } else {
    for (const int number : traffic.rounds[round].schedule_rounds) add(assignments[static_cast<std::size_t>(number)]);
  }
  return pieces;
}

// Moves the pieces that make up a message from the front of `pieces` to `messages`.
void take_pieces(std::vector<RailAssignment>& pieces, const Message& message, std::size_t round,
                 std::vector<Message>& messages) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t sum = 0;
  std::size_t used = 0;
  while (used < pieces.size() && (sum < message.bytes || used == 0)) {
    const std::int64_t bytes = pieces[used++].bytes;
    sum = bytes > most - sum ? most : sum + bytes;
  }
  if (sum != message.bytes) {
    throw BadInput("rails: expected pieces of the message " + text(Pair(message.from, message.to)) + " in round " +
                   text(round) + " with " + std::to_string(message.bytes) + " bytes in all, found " +
                   std::to_string(sum));
  }
  const auto end = pieces.begin() + static_cast<std::ptrdiff_t>(used);
  const auto share = [&](std::int64_t all, std::int64_t bytes) {
    return message.bytes == 0
               ? all
               : std::llround(static_cast<double>(all) * (static_cast<double>(bytes) / static_cast<double>(sum)));
  };
  for (auto piece = pieces.begin(); piece != end; ++piece) {
    Message& made = messages.emplace_back(Message{piece->from, piece->to, piece->bytes, piece->rail});
    made.pieces_sent = share(message.pieces_sent, piece->bytes);
    made.pieces_received = share(message.pieces_received, piece->bytes);
  }
  pieces.erase(pieces.begin(), end);
}

void check_rounds(const Traffic& traffic, Assignments assignments) {
  if (assignments.size() == traffic.rounds.size()) return;
  std::size_t schedule_rounds = 0;
  for (const TrafficRound& round : traffic.rounds) {
    for (const int number : round.schedule_rounds) {
      schedule_rounds = std::max(schedule_rounds, static_cast<std::size_t>(number) + 1);
    }
  }
  if (schedule_rounds > 0 && assignments.size() == schedule_rounds) return;
  throw BadInput("rails: expected a list for each of " + base::counted(traffic.rounds.size(), "round") + ", found " +
                 text(assignments.size()));
}

void check_hosts(const Traffic& traffic, std::span<const int> hosts) {
  if (std::cmp_equal(hosts.size(), traffic.ranks)) return;
  throw BadInput("rails: expected the host of each of " + std::to_string(traffic.ranks) + " ranks, found " +
                 text(hosts.size()) + " hosts");
}

// Counts the messages of a round that leave their host, and those among them that have rails.
class Complete {
 public:
  Complete(std::span<const int> hosts, std::size_t round) : hosts_(hosts), round_(round) {}
  void count(const Message& message, bool has_rails) {
    if (hosts_.empty() || message.bytes == 0 || host(message.from) == host(message.to)) return;
    ++leaving_;
    if (has_rails) {
      ++found_;
    } else if (!missing_) {
      missing_ = Pair(message.from, message.to);
    }
  }
  void check() const {
    if (!missing_) return;
    throw BadInput("rails: expected rails of " + base::counted(leaving_, "message") +
                   " that leave their host in round " + text(round_) + ", found those of " + text(found_) +
                   "; the message " + text(*missing_) + " has none");
  }

 private:
  [[nodiscard]] int host(int rank) const {
    if (rank >= 0 && std::cmp_less(rank, hosts_.size())) return hosts_[static_cast<std::size_t>(rank)];
    throw BadInput("rails: expected messages of ranks from 0 to " + text(hosts_.size() - 1) + ", found rank " +
                   std::to_string(rank));
  }

  std::span<const int> hosts_;
  std::size_t round_;
  std::size_t leaving_ = 0;
  std::size_t found_ = 0;
  std::optional<Pair> missing_;
};

}  // namespace

std::vector<std::vector<RailAssignment>> assign_rails(const Traffic& traffic, std::span<const int> hosts,
                                                      const RailOptions& options) {
  check_hosts(traffic, hosts);
  std::vector<std::vector<RailMessage>> rounds;
  for (const TrafficRound& round : traffic.listed().rounds) {
    std::vector<RailMessage>& messages = rounds.emplace_back();
    for (const Message& message : round.messages) messages.push_back({message.from, message.to, message.bytes});
  }
  return assign_rails(rounds, hosts, options);
}

Traffic on_rails(const Traffic& traffic, Assignments assignments, std::span<const int> hosts) {
  check_rounds(traffic, assignments);
  if (!hosts.empty()) check_hosts(traffic, hosts);
  Traffic result = traffic.listed();
  for (std::size_t k = 0; k < result.rounds.size(); ++k) {
    std::map<Pair, std::vector<RailAssignment>> pieces = pieces_of(traffic, k, assignments);
    std::vector<Message> messages;
    Complete complete(hosts, k);
    for (const Message& message : result.rounds[k].messages) {
      const auto found = pieces.find({message.from, message.to});
      complete.count(message, found != pieces.end());
      if (found == pieces.end()) {
        messages.push_back(message);
        continue;
      }
      take_pieces(found->second, message, k, messages);
      if (found->second.empty()) pieces.erase(found);
    }
    if (!pieces.empty()) {
      throw BadInput("rails: expected rails of messages of round " + text(k) + ", found more " +
                     text(pieces.begin()->first) + " than the round sends");
    }
    complete.check();
    result.rounds[k].messages = std::move(messages);
  }
  return result;
}

}  // namespace onehop
