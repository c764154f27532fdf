// The messages of an all-reduce by host, piece by piece: while one piece is between the hosts, the ranks of the hosts
// reduce the next. And those of a broadcast by host, chunk by chunk.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "machine/simulate/round_flows.h"
#include "onehop/error.h"
#include "onehop/machine/simulate.h"
#include "src/base/checked.h"
#include "src/base/memory_left.h"

namespace onehop {
namespace {

// More pieces change the time little, and take long to simulate.
constexpr std::int64_t most_pieces = 16;
// Longer lists take long; equal hosts need none.
constexpr std::int64_t longest_list = std::int64_t{1} << 18;

using Hosts = std::vector<std::vector<int>>;

Hosts ranks_of(std::span<const int> hosts) {
  std::map<int, std::vector<int>> found;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) found[hosts[rank]].push_back(static_cast<int>(rank));
  Hosts lists;
  for (auto& [unused, ranks] : found) lists.push_back(std::move(ranks));
  std::ranges::sort(lists);
  return lists;
}

TrafficRound new_round(const Traffic& traffic) {
  TrafficRound round;
  round.collective = true;
  round.schedule_rounds = {static_cast<int>(traffic.rounds.size())};
  return round;
}

// Hosts and ranks of a host are powers of two, in order: every step is an exchange of bits, one after the other.
bool is_regular(const Hosts& hosts) {
  int next = 0;
  return std::has_single_bit(hosts.size()) && std::has_single_bit(hosts.front().size()) &&
         std::ranges::all_of(hosts, [&](const auto& ranks) {
           return ranks.size() == hosts.front().size() &&
                  std::ranges::all_of(ranks, [&](int rank) { return rank == next++; });
         });
}

void add_regular(Traffic& traffic, const Hosts& hosts, std::int64_t bytes) {
  const auto inner = static_cast<int>(std::bit_width(hosts.front().size())) - 1;
  const auto all = inner + static_cast<int>(std::bit_width(hosts.size())) - 1;
  const auto lanes = static_cast<std::int64_t>(hosts.front().size());
  for (const bool inside : {true, false, false, true}) {
    TrafficRound round = new_round(traffic);
    round.kind = TrafficRound::Kind::bits;
    for (int bit = inside ? 0 : inner; bit < (inside ? inner : all); ++bit) round.bits.push_back(bit);
    round.bytes = bytes / lanes / (inside ? 1 : static_cast<std::int64_t>(hosts.size()));
    round.mixed = true;
    traffic.rounds.push_back(std::move(round));
  }
}

void check_messages(double number) { detail::check_room("simulate", number, "messages", detail::listed_message_bytes); }

std::size_t lanes_of(const Hosts& hosts) {
  return std::ranges::min_element(hosts, {}, &std::vector<int>::size)->size();
}

// From the first rank of `ranks` to the others, or from each of the first `from` ranks.
void add_inside(TrafficRound& round, const std::vector<int>& ranks, std::size_t from, std::int64_t bytes) {
  for (std::size_t sender = 0; sender < from; ++sender) {
    for (std::size_t k = 1; k < ranks.size(); ++k) {
      round.messages.push_back({ranks[sender], ranks[(sender + k) % ranks.size()], bytes});
    }
  }
}

// One of the four steps of a piece of so many bytes for each lane.
void add_step(TrafficRound& round, const Hosts& hosts, std::size_t lanes, int step, std::int64_t bytes) {
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const std::vector<int>& ranks = hosts[host];
    if (step == 0 || step == 3) {
      for (std::size_t from = 0; from < ranks.size(); ++from) {
        for (std::size_t k = 1; k < ranks.size(); ++k) {
          const std::size_t to = (from + k) % ranks.size();
          if ((step == 0 ? to : from) < lanes) round.messages.push_back({ranks[from], ranks[to], bytes});
        }
      }
      continue;
    }
    const std::int64_t share = (bytes + std::ssize(hosts) - 1) / std::ssize(hosts);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      for (std::size_t k = 1; k < hosts.size(); ++k) {
        round.messages.push_back({ranks[lane], hosts[(host + k) % hosts.size()][lane], share});
      }
    }
  }
}

}  // namespace

Traffic by_host_traffic(const AllReduceSpec& spec, std::span<const int> hosts, std::int64_t piece_bytes) {
  if (std::cmp_not_equal(hosts.size(), spec.ranks) || spec.ranks < 1 || spec.elements < 0 || piece_bytes < 1) {
    throw BadInput("allreduce: expected the host of each of " + std::to_string(spec.ranks) +
                   " ranks, one or more, and 0 elements or more, found " + std::to_string(hosts.size()) +
                   " hosts and " + std::to_string(spec.elements) + " elements");
  }
  const std::int64_t all = detail::checked_multiply(spec.elements, bytes_of(spec.type), "the bytes of an all-reduce");
  Traffic traffic{"allreduce", spec.ranks, {}, detail::checked_multiply(2, all, "the bytes of an all-reduce")};
  const Hosts lists = ranks_of(hosts);
  const std::size_t lanes = lanes_of(lists);
  const auto count = std::ssize(lists);
  std::int64_t messages = 2 * static_cast<std::int64_t>(lanes) * count * (count - 1);  // of a round
  for (const auto& ranks : lists) messages += 2 * std::ssize(ranks) * (std::ssize(ranks) - 1);
  if (messages > longest_list && is_regular(lists)) {
    add_regular(traffic, lists, all);
    return traffic;
  }
  const std::int64_t pieces = std::clamp((all + piece_bytes - 1) / piece_bytes, std::int64_t{1}, most_pieces);
  check_messages(static_cast<double>(pieces) * static_cast<double>(messages));
  const std::int64_t parts = pieces * static_cast<std::int64_t>(lanes);
  const std::int64_t bytes = (all + parts - 1) / parts;
  for (std::int64_t turn = 0; turn < pieces + 3; ++turn) {
    TrafficRound round = new_round(traffic);
    for (int step = 0; step < 4; ++step) {
      if (turn >= step && turn - step < pieces) add_step(round, lists, lanes, step, bytes);
    }
    std::ranges::stable_sort(round.messages, {}, &Message::from);
    traffic.rounds.push_back(std::move(round));
  }
  return traffic;
}

Traffic broadcast_traffic(std::span<const int> hosts, std::int64_t bytes, std::int64_t chunks, bool in_chain) {
  if (hosts.empty() || bytes < 0 || chunks < 0) {
    throw BadInput("broadcast: expected a rank or more, and 0 bytes and chunks or more");
  }
  Traffic traffic{"broadcast", static_cast<int>(hosts.size()), {}, bytes};
  Hosts lists = ranks_of(hosts);
  if (chunks == 0 || lists.size() == 1) {
    std::vector<int> all(hosts.size());
    std::iota(all.begin(), all.end(), 0);
    traffic.rounds.push_back(new_round(traffic));
    add_inside(traffic.rounds.back(), all, 1, bytes);
    return traffic;
  }
  const std::size_t lanes = lanes_of(lists);
  const auto parts = static_cast<std::int64_t>(lanes);
  const std::int64_t others = std::ssize(lists) - 1;
  const std::int64_t pieces = parts * chunks * (in_chain ? 1 : others);
  check_messages(static_cast<double>(pieces) * static_cast<double>(others));
  const std::int64_t chunk = (bytes + pieces - 1) / pieces;
  const auto add = [&traffic](TrafficRound round) {  // hosts with one rank have nothing to move inside
    if (!round.messages.empty()) traffic.rounds.push_back(std::move(round));
  };
  TrafficRound first = new_round(traffic);
  add_inside(first, lists.front(), 1, bytes);
  add(std::move(first));
  for (std::int64_t turn = 0; turn < chunks + (in_chain ? others - 1 : 1); ++turn) {
    TrafficRound round = new_round(traffic);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      for (std::size_t by = 1; by < lists.size(); ++by) {
        const std::int64_t number = in_chain ? turn + 1 - static_cast<std::int64_t>(by) : turn;
        if (number >= 0 && number < chunks) {
          round.messages.push_back({lists[in_chain ? by - 1 : 0][lane], lists[by][lane], chunk});
        }
        for (std::size_t to = 1; !in_chain && turn > 0 && to < lists.size(); ++to) {
          if (to != by) round.messages.push_back({lists[by][lane], lists[to][lane], chunk});
        }
      }
    }
    std::ranges::stable_sort(round.messages, {}, &Message::from);
    add(std::move(round));
  }
  TrafficRound last = new_round(traffic);
  for (std::size_t host = 1; host < lists.size(); ++host) {
    add_inside(last, lists[host], lanes, (bytes + parts - 1) / parts);
  }
  add(std::move(last));
  return traffic;
}

}  // namespace onehop
