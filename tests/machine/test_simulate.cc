#include "onehop/machine/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "onehop/count.h"
#include "onehop/error.h"
#include "tests/machine/machines.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using testing::guess;
using testing::level;
using testing::machine;

constexpr double latency = 1e-6;
constexpr double overhead = 2e-7;
constexpr double bandwidth = 1e10;

Traffic list(int ranks, std::vector<std::vector<Message>> rounds) {
  Traffic traffic{"list", ranks, {}, 0};
  for (auto& messages : rounds) {
    TrafficRound round;
    round.messages = std::move(messages);
    traffic.rounds.push_back(std::move(round));
  }
  return traffic;
}

TEST(Simulate, AMessageTakesOverheadFlowLatencyAndOverhead) {
  const Machine star = machine({level("host", Routing::all_to_all, {4})});
  const Simulation one = simulate(list(2, {{{0, 1, 1000000}}}), star);
  EXPECT_NEAR(one.seconds, overhead + 1e6 / bandwidth + latency + overhead, 1e-15);
  EXPECT_NEAR(one.timelines[0][0].end, overhead + 1e6 / bandwidth, 1e-15);
  EXPECT_EQ(one.rounds[0].messages, 1);
  EXPECT_EQ(one.rounds[0].bytes, 1e6);
  const Simulation empty = simulate(list(2, {{{0, 1, 0}}}), star);
  EXPECT_NEAR(empty.seconds, overhead + latency + overhead, 1e-15);
}

TEST(Simulate, MessagesShareALinkFairly) {
  const Machine star = machine({level("host", Routing::all_to_all, {4})});
  // Two senders share the link into rank 2; the gap between their ends is only that of their sizes.
  const Simulation both = simulate(list(3, {{{0, 2, 1000000}, {1, 2, 3000000}}}), star);
  // Half rate until the shorter one ends, then the longer one alone: 4e6 bytes through one link.
  EXPECT_NEAR(both.seconds, overhead + 4e6 / bandwidth + latency + overhead, 1e-12);
  EXPECT_EQ(both.links.front().bytes, 4e6);
  EXPECT_EQ(both.links.front().name, "processor 2, link 0 in");
  SimulateOptions apart;
  apart.contention = false;
  EXPECT_NEAR(simulate(list(3, {{{0, 2, 1000000}, {1, 2, 3000000}}}), star, apart).seconds,
              overhead + 3e6 / bandwidth + latency + overhead, 1e-12);
}

TEST(Simulate, AFlowThatCannotUseItsShareLeavesItToOthers) {
  // Three messages share the link above the switch of ranks 0 and 1. One of them shares the link to the switch of
  // ranks 4 and 5 with a message from rank 2, which gets what the other cannot use.
  Level tree = level("system", Routing::fat_tree, {2, 4});
  tree.taper = {0.25};  // half a link for two members
  const Machine net = machine({tree});
  const Simulation run = simulate(list(8, {{{0, 4, 1000000}, {1, 6, 1000000}, {1, 7, 1000000}, {2, 5, 1000000}}}), net);
  EXPECT_NEAR(run.timelines[2][0].end, overhead + 1e6 / (bandwidth / 3), 2e-7);
  EXPECT_NEAR(run.timelines[0][0].end, overhead + 1e6 / (bandwidth / 6), 2e-7);
}

TEST(Simulate, RanksWaitOnlyForWhatTheyReceive) {
  const Machine star = machine({level("host", Routing::all_to_all, {4})});
  // A chain over three rounds, and rank 3, which takes no part in it.
  const Simulation chain = simulate(list(4, {{{0, 1, 1000}}, {{1, 2, 1000}}, {{2, 3, 1000}}}), star);
  const double hop = 2 * overhead + latency + 1e3 / bandwidth;
  EXPECT_NEAR(chain.seconds, 3 * hop, 1e-15);
  for (const SimulatedRound& round : chain.rounds) EXPECT_NEAR(round.seconds, hop, 1e-15);
  EXPECT_EQ(chain.timelines[3][1].end, 0);
  // A message that arrives before its receiver has entered the round waits.
  const Simulation late = simulate(list(3, {{{2, 1, 1000000}}, {{0, 1, 1000}}}), star);
  EXPECT_NEAR(late.seconds, overhead + 1.001e6 / bandwidth + latency + 2 * overhead, 1e-12);
}

TEST(Simulate, ComputingHidesMessages) {
  const Machine star = machine({level("host", Routing::all_to_all, {2})});
  const Traffic swap = list(2, {{{0, 1, 1000000}, {1, 0, 1000000}}});
  const double alone = simulate(swap, star).seconds;
  SimulateOptions options;
  options.compute = {alone / 2};
  EXPECT_NEAR(simulate(swap, star, options).seconds, alone, 1e-12);
  options.compute = {2 * alone};
  EXPECT_NEAR(simulate(swap, star, options).seconds, overhead + 2 * alone + overhead, 1e-12);
}

TEST(Simulate, TheTorusTakesTheShorterWayAndAddsHops) {
  Level torus = level("system", Routing::torus, {8, 4});
  torus.hop_latency = guess(1e-7);
  const Machine net = machine({torus});
  const auto hops = [&](int to) {
    Traffic one = list(32, {{{0, to, 0}}});
    return (simulate(one, net).seconds - 2 * overhead - latency) / 1e-7 + 1;
  };
  EXPECT_NEAR(hops(1), 1, 1e-6);
  EXPECT_NEAR(hops(7), 1, 1e-6);
  EXPECT_NEAR(hops(5), 3, 1e-6);
  EXPECT_NEAR(hops(4 + 8 * 2), 6, 1e-6);
  const Simulation run = simulate(list(32, {{{0, 6, 1000}}}), net);
  ASSERT_EQ(run.links.size(), 2U);
  EXPECT_EQ(run.links[0].name, "processor 0, dimension 0 down");
}

TEST(Simulate, DragonfliesUseAtMostThreeHopsBetweenRouters) {
  Level fly = level("system", Routing::dragonfly, {2, 4, 5});
  fly.hop_latency = guess(1e-7);
  const Machine net = machine({fly});
  std::map<int, int> seen;
  for (int to = 1; to < 40; ++to) {
    const double more = simulate(list(40, {{{0, to, 0}}}), net).seconds - 2 * overhead - latency;
    ++seen[static_cast<int>(std::lround(more / 1e-7))];
  }
  EXPECT_EQ(seen[0], 1);  // the other member of the router
  EXPECT_EQ(seen[0] + seen[1] + seen[2] + seen[3], 39);
  EXPECT_GT(seen[3], 0);
}

TEST(Simulate, ProcessorsTakeTheLinksOfTheirHostInTurn) {
  Machine net = machine({level("host", Routing::all_to_all, {4}), level("system", Routing::all_to_all, {2})});
  Traffic pairs = list(8, {{{0, 4, 1000000}, {1, 5, 1000000}, {2, 6, 1000000}, {3, 7, 1000000}}});
  const auto flow = [&] { return simulate(pairs, net).seconds - 2 * overhead - latency; };
  EXPECT_NEAR(flow(), 4e6 / bandwidth, 1e-12);
  net.levels[1].links = 2;
  EXPECT_NEAR(flow(), 2e6 / bandwidth, 1e-12);
  net.levels[1].links = 4;
  EXPECT_NEAR(flow(), 1e6 / bandwidth, 1e-12);
  for (Message& message : pairs.rounds[0].messages) message.rail = 2;  // all through one link
  EXPECT_NEAR(flow(), 4e6 / bandwidth, 1e-12);
  for (Message& message : pairs.rounds[0].messages) message.rail = -1;
  net.levels[1].interfaces = 2;
  net.levels[1].injection = guess(1e10);
  EXPECT_NEAR(flow(), 4e6 / bandwidth, 1e-12);
}

TEST(Simulate, ChunksAndSlotsBoundTheRate) {
  const Machine star = machine({level("host", Routing::all_to_all, {2})});
  const Traffic one = list(2, {{{0, 1, 1 << 24}}});
  SimulateOptions options;
  options.chunk_bytes = 1 << 20;
  const double memory = 1e11;
  const double chunk = 1 << 20;
  const double packing = 2 * 2 * chunk / memory;
  EXPECT_NEAR(simulate(one, star, options).seconds, 2 * overhead + latency + (1 << 24) / bandwidth + packing, 1e-12);
  options.chunk_bytes = 0;
  options.slot_bytes = 1000;  // two of them are under way per turn of the flag
  const double turn = 1000 / bandwidth + 2 * latency;
  EXPECT_NEAR(simulate(one, star, options).seconds, 2 * overhead + latency + (1 << 24) / (2 * 1000 / turn), 1e-12);
  options.slot_bytes = 1 << 24;  // the message fits
  EXPECT_NEAR(simulate(one, star, options).seconds, 2 * overhead + latency + (1 << 24) / bandwidth, 1e-12);
}

// Rates by the definition: all grow together in small steps of exact fractions, link by link.
std::vector<double> naive_max_min(const std::vector<std::vector<int>>& routes, const std::vector<double>& capacity) {
  std::vector<double> rate(routes.size(), -1);
  std::vector<double> left = capacity;
  for (;;) {
    int worst = -1;
    double least = 0;
    for (std::size_t l = 0; l < capacity.size(); ++l) {
      int growing = 0;
      for (std::size_t f = 0; f < routes.size(); ++f) {
        growing += rate[f] < 0 && std::ranges::count(routes[f], static_cast<int>(l)) > 0;
      }
      if (growing == 0) continue;
      if (worst < 0 || left[l] / growing < least) {
        worst = static_cast<int>(l);
        least = left[l] / growing;
      }
    }
    if (worst < 0) return rate;
    for (std::size_t f = 0; f < routes.size(); ++f) {
      if (rate[f] >= 0 || std::ranges::count(routes[f], worst) == 0) continue;
      rate[f] = least;
      for (const int l : routes[f]) left[static_cast<std::size_t>(l)] -= least;
    }
  }
}

// The ends of messages that start together, with new rates whenever one of them ends.
std::vector<double> naive_ends(std::vector<std::vector<int>> routes, std::vector<double> bytes, std::size_t links) {
  std::vector<double> ends(routes.size(), -1);
  double now = 0;
  for (std::size_t finished = 0; finished < routes.size();) {
    std::vector<std::vector<int>> left;
    std::vector<std::size_t> which;
    for (std::size_t f = 0; f < routes.size(); ++f) {
      if (ends[f] >= 0) continue;
      left.push_back(routes[f]);
      which.push_back(f);
    }
    const std::vector<double> rates = naive_max_min(left, std::vector<double>(links, bandwidth));
    double step = 1e9;
    for (std::size_t i = 0; i < which.size(); ++i) step = std::min(step, bytes[which[i]] / rates[i]);
    now += step;
    for (std::size_t i = 0; i < which.size(); ++i) {
      bytes[which[i]] -= step * rates[i];
      if (bytes[which[i]] > 1e-3) continue;
      ends[which[i]] = now;
      ++finished;
    }
  }
  return ends;
}

TEST(Simulate, MessagesEndAsByTheDefinitionOfFairness) {
  const Machine net = machine({level("system", Routing::torus, {9})});
  std::uint64_t state = 12345;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int>((state >> 33) % below);
  };
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<Message> messages;
    std::vector<std::vector<int>> routes;
    std::vector<double> bytes;
    for (int from = 0; from < 9; ++from) {
      const int distance = 1 + random(4);
      bytes.push_back(1e6 * (1 + random(5)));
      messages.push_back({from, (from + distance) % 9, static_cast<std::int64_t>(bytes.back())});
      std::vector<int> route;
      for (int hop = 0; hop < distance; ++hop) route.push_back((from + hop) % 9);
      routes.push_back(route);
    }
    const std::vector<double> ends = naive_ends(routes, bytes, 9);
    const Simulation run = simulate(list(9, {messages}), net);
    for (std::size_t rank = 0; rank < 9; ++rank) {
      std::vector<double> arrivals;
      for (std::size_t f = 0; f < 9; ++f) {
        if (messages[f].to == static_cast<int>(rank)) arrivals.push_back(overhead + ends[f] + latency);
      }
      std::ranges::sort(arrivals);
      double expected = overhead;
      for (const double arrival : arrivals) expected = std::max(expected, arrival) + overhead;
      expected = std::max(expected, overhead + ends[rank]);
      EXPECT_NEAR(run.timelines[rank][0].end, expected, 1e-9);
    }
  }
}

TEST(Simulate, PatternsHaveTheTrafficOfTheirSchedules) {
  for (const auto algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
    const AllReduceSpec spec{8, 8 * 64 * 3, ElementType::float32, Combine::add, algorithm};
    EXPECT_EQ(allreduce_traffic(spec).listed().rounds, [&] {
      Traffic traffic = traffic_of(allreduce(spec));
      for (TrafficRound& round : traffic.rounds) {
        round.collective = true;  // a schedule is run by a plan
        if (!round.local_bytes.empty()) round.local_bytes = {round.local_bytes.front()};
      }
      return traffic.rounds;
    }());
  }
  for (const std::vector<int>& permutation : {std::vector<int>{5, 1, 2, 3, 4, 0, 6},
                                              {4, 6, 2, 3, 0, 5, 1},
                                              {0, 1, 2, 3, 5, 6, 4},
                                              {6, 5, 4, 3, 2, 1, 0},
                                              {1, 0, 2, 3, 4, 5, 6}}) {
    const PermuteBitsSpec spec{7, 4, permutation, 16};
    const Traffic pattern = permutation_traffic(spec).listed();
    const Traffic schedule = traffic_of(permute_bits(spec));
    ASSERT_EQ(pattern.rounds.size(), 1U);
    ASSERT_EQ(schedule.rounds.size(), 1U);
    EXPECT_EQ(pattern.rounds[0].messages, schedule.rounds[0].messages);
    for (int rank = 0; rank < 8; ++rank) {
      const auto local = [&](const TrafficRound& round) {
        if (round.local_bytes.empty()) return std::int64_t{0};
        return round.local_bytes[round.local_bytes.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
      };
      EXPECT_EQ(local(pattern.rounds[0]), local(schedule.rounds[0]));
    }
  }
}

TEST(Simulate, RoundsThatReadNothingNewAreJoined) {
  const Traffic traffic = traffic_of(allreduce({4, 4 * 64, ElementType::float32, Combine::add}));
  ASSERT_EQ(traffic.rounds.size(), 2U);
  EXPECT_EQ(traffic.rounds[0].schedule_rounds, (std::vector<int>{0, 1}));
  EXPECT_EQ(traffic.rounds[1].schedule_rounds, (std::vector<int>{2}));
}

TEST(Simulate, BadInputIsNamed) {
  const Machine net = machine({level("host", Routing::all_to_all, {4})});
  const Traffic pairs = list(4, {{{0, 1, 1000}}});
  const auto found = [&](const SimulateOptions& options, const Traffic& traffic) {
    return testing::message_of<BadInput>([&] { (void)simulate(traffic, net, options); });
  };
  SimulateOptions options;
  EXPECT_NE(found(options, list(5, {{}})).find("expected 1 to 4 ranks"), std::string::npos);
  EXPECT_NE(found(options, list(2, {{{0, 0, 5}}})).find("two different ranks"), std::string::npos);
  EXPECT_NE(found(options, list(2, {{{0, 2, 5}}})).find("two different ranks"), std::string::npos);
  options.compute = {1, 2};
  EXPECT_NE(found(options, pairs).find("one for each of 1 round"), std::string::npos);
  options.compute = {-1};
  EXPECT_NE(found(options, pairs).find("at least 0"), std::string::npos);
  options = {};
  options.progress = [](double) { return false; };
  Traffic large{"large", 100000, std::vector<TrafficRound>(1), 0};
  large.rounds[0].kind = TrafficRound::Kind::everyone;
  EXPECT_NE(found({}, large).find("expected 1 to 4 ranks"), std::string::npos);
  const Machine odd = machine({level("host", Routing::all_to_all, {1 << 17})});
  large.rounds[0].kind = TrafficRound::Kind::everyone;
  large.rounds[0].local_bytes.assign(100000, 1);  // not symmetric
  EXPECT_THROW((void)simulate(large, odd), BadInput);
}

TEST(Simulate, ArraysMustFitInMemory) {
  Machine net = machine({level("host", Routing::all_to_all, {4})});
  const AllReduceSpec spec{4, 1000, ElementType::float32, Combine::add, ReduceAlgorithm::two_shot};
  const Traffic reduction = allreduce_traffic(spec);
  EXPECT_EQ(reduction.rank_bytes, 8000);
  EXPECT_EQ(traffic_of(allreduce(spec)).rank_bytes, 8000);
  EXPECT_EQ(permutation_traffic({7, 5, {5, 1, 2, 3, 4, 0, 6}, 16}).rank_bytes, 16 * 32);
  net.memory = guess(8000);
  EXPECT_GT(simulate(reduction, net).seconds, 0);
  net.memory = guess(7999);
  EXPECT_THROW((void)simulate(reduction, net), BadInput);
}

}  // namespace
}  // namespace onehop
