#include "onehop/count.h"

#include <algorithm>
#include <unordered_map>

#include "onehop/error.h"
#include "src/base/checked.h"
#include "src/base/json_text.h"

namespace onehop {

namespace {

constexpr const char* total_bytes = "the bytes of a schedule";

void add_pieces(std::int64_t& total, std::int64_t pieces) {
  total = detail::checked_add(total, pieces, "the pieces of a schedule");
}

// Sums the traffic of every pair of ranks. Transfers must be added round by round.
class PairCounter {
 public:
  explicit PairCounter(const Schedule& schedule) : schedule_(schedule) {}

  void add(const Transfer& transfer, int round) {
    Entry& entry = entry_of(transfer.from.rank, transfer.to.rank);
    if (entry.last_round != round) {
      entry.last_round = round;
      ++entry.count.messages;
    }
    entry.count.bytes = detail::checked_add(entry.count.bytes, schedule_.bytes(transfer), total_bytes);
    add_pieces(entry.count.pieces, transfer.from.slice.pieces());
    add_pieces(entry.count.pieces_received, transfer.to.slice.pieces());
  }

  [[nodiscard]] std::vector<PairCount> sorted() const {
    std::vector<PairCount> pairs;
    pairs.reserve(entries_.size());
    for (const Entry& entry : entries_) pairs.push_back(entry.count);
    std::ranges::sort(pairs, {}, [](const PairCount& pair) { return std::pair(pair.from, pair.to); });
    return pairs;
  }

 private:
  struct Entry {
    PairCount count;
    int last_round = -1;
  };

  Entry& entry_of(int from, int to) {
    // Patterns list the transfers of one pair together, so the last pair usually matches.
    if (last_ < entries_.size() && entries_[last_].count.from == from && entries_[last_].count.to == to) {
      return entries_[last_];
    }
    const std::int64_t key = static_cast<std::int64_t>(from) * schedule_.ranks + to;
    const auto [found, is_new] = index_.try_emplace(key, entries_.size());
    if (is_new) entries_.push_back({.count = {.from = from, .to = to}});
    last_ = found->second;
    return entries_[last_];
  }

  const Schedule& schedule_;
  std::vector<Entry> entries_;
  std::unordered_map<std::int64_t, std::size_t> index_;
  std::size_t last_ = 0;
};

void check_place(const Schedule& schedule, const Place& place, int round, std::size_t transfer) {
  const bool rank_exists = place.rank >= 0 && place.rank < schedule.ranks;
  const bool array_exists = place.array >= 0 && static_cast<std::size_t>(place.array) < schedule.arrays.size();
  if (rank_exists && array_exists) return;
  throw BadInput("count: expected ranks below " + std::to_string(schedule.ranks) + " and arrays below " +
                 std::to_string(schedule.arrays.size()) + ", found rank " + std::to_string(place.rank) + " and array " +
                 std::to_string(place.array) + " in " + describe(schedule, round, static_cast<int>(transfer)));
}

void add_pair(Count& total, const PairCount& pair) {
  RankCount& sender = total.ranks[static_cast<std::size_t>(pair.from)];
  RankCount& receiver = total.ranks[static_cast<std::size_t>(pair.to)];
  sender.messages_sent += pair.messages;
  sender.bytes_sent = detail::checked_add(sender.bytes_sent, pair.bytes, total_bytes);
  add_pieces(sender.pieces_sent, pair.pieces);
  receiver.messages_received += pair.messages;
  receiver.bytes_received = detail::checked_add(receiver.bytes_received, pair.bytes, total_bytes);
  add_pieces(receiver.pieces_received, pair.pieces_received);
  total.messages += pair.messages;
  total.bytes = detail::checked_add(total.bytes, pair.bytes, total_bytes);
}

}  // namespace

Count count(const Schedule& schedule) {
  if (schedule.ranks > max_ranks) {
    throw BadInput("count: expected a schedule of at most " + std::to_string(max_ranks) + " ranks, found " +
                   std::to_string(schedule.ranks));
  }
  Count total;
  total.ranks.resize(static_cast<std::size_t>(std::max(schedule.ranks, 0)));
  PairCounter pairs(schedule);
  for (int round = 0; round < static_cast<int>(schedule.rounds.size()); ++round) {
    const auto& transfers = schedule.rounds[static_cast<std::size_t>(round)].transfers;
    bool moves = false;
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      const Transfer& transfer = transfers[t];
      check_place(schedule, transfer.from, round, t);
      check_place(schedule, transfer.to, round, t);
      if (transfer.from.slice.elements() == 0) continue;
      moves = true;
      if (transfer.from.rank != transfer.to.rank) {
        pairs.add(transfer, round);
        continue;
      }
      std::int64_t& local = total.ranks[static_cast<std::size_t>(transfer.from.rank)].bytes_local;
      local = detail::checked_add(local, schedule.bytes(transfer), total_bytes);
    }
    total.rounds += moves;
  }
  total.pairs = pairs.sorted();
  for (const PairCount& pair : total.pairs) add_pair(total, pair);
  for (const RankCount& rank : total.ranks) {
    total.bytes_local = detail::checked_add(total.bytes_local, rank.bytes_local, total_bytes);
  }
  return total;
}

std::string Count::to_json(int indent) const {
  detail::Json json;
  json["rounds"] = rounds;
  json["messages"] = messages;
  json["bytes"] = bytes;
  json["bytes_local"] = bytes_local;
  json["ranks"] = detail::Json::array();
  for (const RankCount& rank : ranks) {
    json["ranks"].push_back({{"messages_sent", rank.messages_sent},
                             {"messages_received", rank.messages_received},
                             {"bytes_sent", rank.bytes_sent},
                             {"bytes_received", rank.bytes_received},
                             {"bytes_local", rank.bytes_local},
                             {"pieces_sent", rank.pieces_sent},
                             {"pieces_received", rank.pieces_received}});
  }
  json["pairs"] = detail::Json::array();
  for (const PairCount& pair : pairs) {
    json["pairs"].push_back({{"from", pair.from},
                             {"to", pair.to},
                             {"messages", pair.messages},
                             {"bytes", pair.bytes},
                             {"pieces", pair.pieces},
                             {"pieces_received", pair.pieces_received}});
  }
  return detail::json_text(json, indent);
}

}  // namespace onehop
