#include "onehop/machine/mapping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/verify.h"
#include "tests/support/thrown.h"

namespace {

using onehop::BadInput;
using onehop::Grid;
using onehop::HostLayout;
using onehop::MapCost;
using onehop::RankMap;

using Integers = std::vector<std::int64_t>;

std::pair<std::int64_t, std::int64_t> edges(const RankMap& map, const std::string& name) {
  for (const auto& candidate : map.candidates) {
    if (candidate.name == name) return {candidate.cost.edges_between_hosts, candidate.cost.busiest_host_edges};
  }
  return {-1, -1};
}

// Counts edges between hosts from coordinates, without the library's code.
std::pair<std::int64_t, std::int64_t> count_edges(const Grid& grid, const std::vector<int>& host_at,
                                                  const Integers& weights = {}) {
  const std::size_t dims = grid.extents.size();
  const auto coordinates = [&](std::int64_t position) {
    Integers at(dims);
    for (std::size_t d = dims; d-- > 0;) {
      at[d] = position % grid.extents[d];
      position /= grid.extents[d];
    }
    return at;
  };
  const auto number = [&](const Integers& at) {
    std::int64_t position = 0;
    for (std::size_t d = 0; d < dims; ++d) position = position * grid.extents[d] + at[d];
    return position;
  };
  std::int64_t sum = 0;
  std::map<int, std::int64_t> leaving;
  for (std::int64_t p = 0; p < std::ssize(host_at); ++p) {
    for (std::size_t d = 0; d < dims; ++d) {
      for (const int step : {-1, 1}) {
        Integers at = coordinates(p);
        at[d] += step;
        const bool outside = at[d] < 0 || at[d] >= grid.extents[d];
        if (outside && (grid.periodic.empty() || !grid.periodic[d])) continue;
        at[d] = (at[d] + grid.extents[d]) % grid.extents[d];
        const int from = host_at[static_cast<std::size_t>(p)];
        if (host_at[static_cast<std::size_t>(number(at))] == from) continue;
        const std::int64_t weight = weights.empty() ? 1 : weights[d];
        sum += weight;
        leaving[from] += weight;
      }
    }
  }
  std::int64_t busiest = 0;
  for (const auto& [host, count] : leaving) busiest = std::max(busiest, count);
  return {sum, busiest};
}

void expect_valid(const Grid& grid, const HostLayout& hosts, const RankMap& map) {
  const auto positions = static_cast<std::size_t>(grid.positions());
  ASSERT_EQ(map.rank_at.size(), positions);
  std::set<int> seen;
  for (std::size_t p = 0; p < positions; ++p) {
    const int rank = map.rank_at[p];
    ASSERT_TRUE(seen.insert(rank).second) << "rank " << rank << " twice";
    EXPECT_EQ(hosts.host_of_rank.at(static_cast<std::size_t>(rank)), map.host_at[p]);
    EXPECT_EQ(map.position_of.at(static_cast<std::size_t>(rank)), static_cast<int>(p));
  }
  EXPECT_EQ(count_edges(grid, map.host_at), std::pair(map.cost().edges_between_hosts, map.cost().busiest_host_edges));
  if (map.lower_bound) {
    EXPECT_LE(*map.lower_bound, grid.bytes.empty() ? map.cost().edges_between_hosts : map.cost().bytes_between_hosts);
  }
  for (const auto& candidate : map.candidates) {
    EXPECT_LE(map.cost().weighted_bytes, candidate.cost.weighted_bytes) << candidate.name;
  }
}

TEST(Mapping, ReachesThePublishedFiguresOf20x15x16) {
  const Grid grid{{20, 15, 16}};
  const RankMap map = grid.map(HostLayout::of_equal(100, 48));
  EXPECT_EQ(edges(map, "best box"), std::pair(std::int64_t{6280}, std::int64_t{80}));
  EXPECT_EQ(edges(map, "hyperplane"), std::pair(std::int64_t{6616}, std::int64_t{88}));
  EXPECT_EQ(map.lower_bound, 6280);
  EXPECT_EQ(map.cost().edges_between_hosts, 6280);
  EXPECT_EQ(map.cost().busiest_host_edges, 80);
}

TEST(Mapping, IsWithinFivePercentOfTheSurfaceBound) {
  struct Case {
    Integers extents;
    std::int64_t hosts, per_host;
    bool periodic;
  };
  for (const Case& each :
       {Case{{50, 48}, 50, 48, false}, Case{{50, 48}, 50, 48, true}, Case{{100, 100}, 250, 40, false},
        Case{{20, 18, 17}, 510, 12, false}, Case{{8, 8, 8, 8}, 64, 64, true}, Case{{24, 24}, 18, 32, false},
        Case{{12, 10, 9, 8}, 120, 72, false}}) {
    Grid grid{each.extents};
    grid.periodic.assign(each.extents.size(), each.periodic);
    const HostLayout hosts = HostLayout::of_equal(each.hosts, each.per_host);
    const RankMap map = grid.map(hosts, {.steps = 1'000'000});
    ASSERT_TRUE(map.lower_bound);
    EXPECT_LE(static_cast<double>(map.cost().edges_between_hosts), 1.05 * static_cast<double>(*map.lower_bound));
    expect_valid(grid, hosts, map);
  }
}

TEST(Mapping, RandomGridsAndHostsAreValidAndNeverWorseThanPublished) {
  std::mt19937 random(7);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  for (int i = 0; i < 60; ++i) {
    Grid grid;
    for (int d = number(1, 4); d > 0; --d) {
      grid.extents.push_back(number(1, 7));
      grid.periodic.push_back(number(0, 1) == 1);
    }
    const std::int64_t positions = grid.positions();
    Integers sizes;
    for (std::int64_t left = positions; left > 0; left -= sizes.back()) {
      sizes.push_back(number(1, static_cast<int>(std::min<std::int64_t>(left, 20))));
    }
    if (i % 3 == 0) sizes.push_back(5);  // a host more than needed
    HostLayout hosts = HostLayout::of_sizes(sizes);
    if (i % 2 == 0) std::ranges::shuffle(hosts.host_of_rank, random);
    const RankMap map = grid.map(hosts, {.steps = 200'000});
    expect_valid(grid, hosts, map);
    EXPECT_EQ(onehop::map_cost(grid, hosts, map.rank_at), map.cost());
    const auto published = std::ranges::min_element(map.candidates, {}, [](const auto& candidate) {
      return candidate.name == "local search"
                 ? std::pair(INT64_MAX, INT64_MAX)
                 : std::pair(candidate.cost.edges_between_hosts, candidate.cost.busiest_host_edges);
    });
    const double fall = static_cast<double>(published->cost.edges_between_hosts) /
                        static_cast<double>(std::max<std::int64_t>(1, map.cost().edges_between_hosts));
    EXPECT_LE(static_cast<double>(map.cost().busiest_host_edges),
              static_cast<double>(published->cost.busiest_host_edges) * fall * fall * fall * fall);
  }
}

// Maps that graph partitioners have found.
TEST(Mapping, IsAsGoodAsTheBestKnownMaps) {
  const RankMap ring = Grid{{5, 8, 5}, {false, true, false}}.map(HostLayout::of_equal(4, 50));
  EXPECT_EQ(ring.cost().edges_between_hosts, 184);
  EXPECT_EQ(ring.cost().busiest_host_edges, 46);
  EXPECT_EQ(Grid({{11, 3, 6}}).map(HostLayout::of_equal(3, 66)).cost().edges_between_hosts, 84);
  const RankMap four = Grid{{5, 7, 3, 2}, {false, true, false, false}}.map(HostLayout::of_equal(6, 35));
  EXPECT_LE(four.cost().edges_between_hosts, 306);
}

// The bound must hold for the best of all maps, found by trying them all.
TEST(Mapping, LowerBoundHoldsForEveryMapOfSmallGrids) {
  for (const bool periodic : {false, true}) {
    for (const Integers& extents : {Integers{2, 4}, Integers{3, 3}, Integers{8}, Integers{2, 2, 2}, Integers{1, 9}}) {
      Grid grid{extents};
      grid.periodic.assign(extents.size(), periodic);
      const int positions = static_cast<int>(grid.positions());
      for (const Integers& sizes : {Integers{4, positions - 4}, Integers{2, 3, positions - 5}}) {
        const HostLayout hosts = HostLayout::of_sizes(sizes);
        const RankMap map = grid.map(hosts);
        std::vector<int> host_at = hosts.host_of_rank;
        std::int64_t least = INT64_MAX;
        do {
          least = std::min(least, count_edges(grid, host_at).first);
        } while (std::next_permutation(host_at.begin(), host_at.end()));
        if (map.lower_bound) {
          EXPECT_LE(*map.lower_bound, least);
        }
        EXPECT_EQ(map.cost().edges_between_hosts, least) << positions << " positions on " << sizes.size() << " hosts";
      }
    }
  }
}

TEST(Mapping, LowerBoundHoldsForUnequalBytes) {
  for (const Integers& bytes : {Integers{1, 7}, Integers{7, 1}, Integers{100, 8}, Integers{8, 100}}) {
    for (const Integers& extents : {Integers{2, 4}, Integers{4, 2}, Integers{3, 3}}) {
      const Grid grid{extents, {}, bytes};
      const int positions = static_cast<int>(grid.positions());
      const HostLayout hosts = HostLayout::of_sizes(Integers{4, positions - 4});
      const RankMap map = grid.map(hosts);
      std::vector<int> host_at = hosts.host_of_rank;
      std::int64_t least = INT64_MAX;
      do {
        least = std::min(least, count_edges(grid, host_at, bytes).first);
      } while (std::next_permutation(host_at.begin(), host_at.end()));
      ASSERT_TRUE(map.lower_bound);
      EXPECT_LE(*map.lower_bound, least);
      EXPECT_EQ(map.cost().bytes_between_hosts, least);
    }
  }
  // One host takes two rows of the cheap dimension: 3 borders of 8 messages of 8 bytes, each way.
  const RankMap rows = Grid{{8, 8}, {}, {8, 100}}.map(HostLayout::of_equal(4, 16));
  EXPECT_EQ(rows.cost().bytes_between_hosts, 384);
  ASSERT_TRUE(rows.lower_bound);
  EXPECT_LE(*rows.lower_bound, 384);
}

TEST(Mapping, LocalSearchBeatsThePublishedMaps) {
  const RankMap map = Grid{{13, 11, 7}}.map(HostLayout::of_equal(77, 13), {.steps = 2'000'000});
  EXPECT_EQ(map.chosen, "local search");
  EXPECT_LT(map.cost().edges_between_hosts, edges(map, "strips").first);
  const RankMap plain = Grid{{13, 11, 7}}.map(HostLayout::of_equal(77, 13), {.refine = false});
  EXPECT_EQ(plain.chosen, "strips");
}

TEST(Mapping, WeighsDimensionsByTheirBytes) {
  // Messages of the first dimension are large: hosts must take whole columns.
  const RankMap map = Grid{{8, 8}, {}, {1000, 1}}.map(HostLayout::of_equal(8, 8));
  EXPECT_EQ(map.cost().bytes_between_hosts, 7 * 8 * 2);
}

TEST(Mapping, NestedGroupsKeepTrafficInside) {
  HostLayout hosts = HostLayout::of_equal(16, 4);
  hosts.groups = {4};
  hosts.costs = {1, 10};
  const Grid grid{{8, 8}};
  const RankMap map = grid.map(hosts);
  // Four groups of 16 positions each cut the grid into quarters at best: 2 lines of 8 edges, both ways.
  EXPECT_EQ(map.cost().bytes_by_level, (Integers{128, 64, 32}));
  EXPECT_EQ(map.cost().weighted_bytes, 64 + 320);
  expect_valid(grid, hosts, map);
}

TEST(Mapping, RanksOfAHostTakeItsPositionsInAscendingOrder) {
  // Ranks dealt out to hosts in turn: 0 2 4 ... on host 0.
  HostLayout hosts;
  for (int rank = 0; rank < 16; ++rank) hosts.host_of_rank.push_back(rank % 2);
  const RankMap map = Grid{{4, 4}}.map(hosts);
  EXPECT_EQ(map.cost().edges_between_hosts, 8);
  for (int host = 0; host < 2; ++host) {
    int last = -1;
    for (std::size_t p = 0; p < 16; ++p) {
      if (map.host_at[p] != host) continue;
      EXPECT_GT(map.rank_at[p], last);
      last = map.rank_at[p];
    }
  }
}

TEST(Mapping, MapsScheduleByItsBytes) {
  // 8 pairs exchange; the partners are on different hosts until they are mapped.
  onehop::Schedule schedule{"pairs", 16, {{"a", 8, onehop::ElementType::bytes, {100}}}, {onehop::Round{}}, {}};
  for (int rank = 0; rank < 8; ++rank) {
    schedule.rounds[0].transfers.push_back(
        {{rank, 0, onehop::Slice::range(0, 100)}, {rank + 8, 0, onehop::Slice::range(0, 100)}});
  }
  const HostLayout hosts = HostLayout::of_equal(4, 4);
  const RankMap map = onehop::map_schedule(schedule, hosts);
  EXPECT_EQ(edges(map, "row-major"), std::pair(std::int64_t{8}, std::int64_t{4}));
  EXPECT_EQ(map.cost().bytes_between_hosts, 0);
  const onehop::Schedule renumbered = onehop::renumber(schedule, map.rank_at);
  for (const auto& transfer : renumbered.rounds[0].transfers) {
    EXPECT_EQ(transfer.from.rank / 4, transfer.to.rank / 4);
  }
}

TEST(Mapping, NamesWhatIsWrong) {
  const HostLayout four = HostLayout::of_equal(2, 2);
  const auto contains = [](const std::string& text, const auto& call) {
    onehop::testing::expect_says<BadInput>(call, text);
  };
  contains("expected 1 host or more, found 0", [] { (void)Grid{{2}}.map(HostLayout{}); });
  contains("below 2^63", [] { (void)HostLayout::of_equal(INT64_MAX, 4); });
  contains("dimension 1, found 0", [&] { (void)Grid{{2, 0}}.map(four); });
  contains("1 to 6 dimensions, found 0", [&] { (void)Grid{}.map(four); });
  contains("periodic for each of 2 dimensions of the grid, found 1", [&] { (void)Grid{{2, 2}, {true}}.map(four); });
  contains("below 2^63", [&] { (void)Grid{{2, 2}, {}, {INT64_MAX, 1}}.map(four); });
  contains("0 bytes or more, found -1", [&] { (void)Grid{{2, 2}, {}, {-1, 1}}.map(four); });
  const std::vector<int> twice{0, 1, 1, 2};
  contains("found rank 1 at position 2 and at position 1", [&] { (void)onehop::map_cost({{2, 2}}, four, twice); });
  const std::vector<int> beyond{0, 1, 2, 4};
  contains("ranks from 0 to 3, found 4", [&] { (void)onehop::map_cost({{2, 2}}, four, beyond); });
  onehop::Schedule schedule;
  schedule.ranks = 4;
  contains("found 1 twice", [&] { (void)onehop::renumber(schedule, twice); });
}

}  // namespace
