// Boxes folded into a torus of hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "onehop/machine/mapping.h"

namespace {

using onehop::Grid;
using onehop::HostLayout;
using onehop::RankMap;

using Integers = std::vector<std::int64_t>;

std::int64_t product(const Integers& factors) {
  std::int64_t all = 1;
  for (const std::int64_t factor : factors) all *= factor;
  return all;
}

// Digits of a number, the last one fastest.
Integers coordinates(std::int64_t number, const Integers& extents) {
  Integers at(extents.size());
  for (std::size_t d = extents.size(); d-- > 0;) {
    at[d] = number % extents[d];
    number /= extents[d];
  }
  return at;
}

// Hops of all messages between nearest neighbours, from coordinates, without the library's code.
std::int64_t count_hops(const Grid& grid, const Integers& torus, const std::vector<int>& host_at) {
  const auto torus_hops = [&](int a, int b) {
    std::int64_t hops = 0;
    for (std::size_t d = 0; d < torus.size(); ++d) {
      const std::int64_t apart = std::abs(coordinates(a, torus)[d] - coordinates(b, torus)[d]);
      hops += std::min(apart, torus[d] - apart);
    }
    return hops;
  };
  std::int64_t sum = 0;
  for (std::int64_t p = 0; p < std::ssize(host_at); ++p) {
    for (std::size_t d = 0; d < grid.extents.size(); ++d) {
      Integers at = coordinates(p, grid.extents);
      if (++at[d] == grid.extents[d]) {
        if (!grid.periodic[d]) continue;
        at[d] = 0;
      }
      std::int64_t beside = 0;
      for (std::size_t e = 0; e < at.size(); ++e) beside = beside * grid.extents[e] + at[e];
      const std::int64_t bytes = grid.bytes.empty() ? 1 : grid.bytes[d];
      sum += 2 * bytes * torus_hops(host_at[static_cast<std::size_t>(p)], host_at[static_cast<std::size_t>(beside)]);
    }
  }
  return sum;
}

HostLayout torus_of(const Integers& torus, std::int64_t per_host) {
  HostLayout hosts = HostLayout::of_equal(product(torus), per_host);
  hosts.torus = torus;
  return hosts;
}

const onehop::MapCandidate* find(const RankMap& map, const std::string& name) {
  const auto found = std::ranges::find(map.candidates, name, &onehop::MapCandidate::name);
  return found == map.candidates.end() ? nullptr : &*found;
}

struct Case {
  Integers extents;
  Integers torus;
  std::int64_t per_host;
};

class FoldedIntoATorus : public testing::TestWithParam<Case> {};

// One hop is the least, so these are optimal.
TEST_P(FoldedIntoATorus, PeriodicNeighboursAreOneHopApart) {
  const auto& [extents, torus, per_host] = GetParam();
  const Grid grid{extents, std::vector<bool>(extents.size(), true)};
  const RankMap map = grid.map(torus_of(torus, per_host));
  EXPECT_EQ(map.cost().byte_hops, map.cost().bytes_between_hosts);
  EXPECT_EQ(map.cost().byte_hops, count_hops(grid, torus, map.host_at));
  std::vector<int> ranks = map.rank_at;
  std::ranges::sort(ranks);
  for (int rank = 0; rank < std::ssize(ranks); ++rank) EXPECT_EQ(ranks[static_cast<std::size_t>(rank)], rank);
}

INSTANTIATE_TEST_SUITE_P(Mapping, FoldedIntoATorus,
                         testing::Values(Case{{16, 16}, {4, 4, 4, 4}, 1},     // both dimensions become rings
                                         Case{{32, 32}, {8, 8, 4, 4}, 1},     //
                                         Case{{12, 12}, {3, 4, 6, 2}, 1},     // a comb of three teeth would not close
                                         Case{{9, 4}, {3, 3, 4}, 1},          // a ring of nine in 3x3
                                         Case{{16, 16, 16}, {8, 8, 16}, 4},   // boxes of 2x2x1, in the right order
                                         Case{{64, 64}, {4, 4, 4, 8, 2}, 4},  //
                                         Case{{16, 16, 16, 8}, {8, 8, 8, 4}, 16}));

TEST(Folded, DividesATorusDimensionAmongTheDimensionsOfTheGrid) {
  // 4x4 boxes do not fit into 2x8 without a fold that divides the 8.
  const Grid grid{{4, 4}, {false, false}};
  const RankMap map = grid.map(torus_of({2, 8}, 1));
  const auto* folded = find(map, "folded boxes");
  ASSERT_NE(folded, nullptr);
  EXPECT_LT(folded->cost.byte_hops, find(map, "row-major")->cost.byte_hops);
  EXPECT_EQ(map.cost().byte_hops, count_hops(grid, {2, 8}, map.host_at));
}

TEST(Folded, WeighsDimensionsByTheirBytes) {
  // Only one of the two dimensions can stay on neighbouring hosts throughout.
  for (const Integers& bytes : {Integers{1000, 1}, Integers{1, 1000}}) {
    const Grid grid{{8, 8}, {true, true}, bytes};
    const RankMap map = grid.map(torus_of({4, 4, 4}, 1));
    EXPECT_EQ(map.cost().byte_hops, count_hops(grid, {4, 4, 4}, map.host_at));
    // 64 ranks, two messages each along the heavy dimension, all over one hop.
    EXPECT_LT(map.cost().byte_hops, 64 * 2 * 1000 + 64 * 2 * 4);
  }
}

TEST(Folded, IsLeftOutWhereTheHostsDoNotFillTheTorus) {
  HostLayout hosts = HostLayout::of_equal(12, 4);
  hosts.torus = {4, 4};
  const RankMap map = Grid{{8, 6}}.map(hosts);
  EXPECT_EQ(find(map, "folded boxes"), nullptr);
  EXPECT_TRUE(std::ranges::any_of(map.skipped, [](const auto& each) { return each.name == "folded boxes"; }));
  EXPECT_EQ(find(Grid{{8, 6}}.map(HostLayout::of_equal(12, 4)), "folded boxes"), nullptr);
}

// Every torus of as many places holds the boxes in some way.
TEST(Folded, RandomGridsOfBoxesAreCountedIndependently) {
  std::mt19937 random(5);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  for (int i = 0; i < 40; ++i) {
    Integers factors;
    for (int k = number(1, 6); k > 0; --k) factors.push_back(number(2, 3));
    const auto deal = [&] {
      Integers dealt(static_cast<std::size_t>(number(1, 4)), 1);
      for (const std::int64_t factor : factors) {
        dealt[static_cast<std::size_t>(number(0, static_cast<int>(dealt.size()) - 1))] *= factor;
      }
      return dealt;
    };
    const Integers torus = deal();
    Grid grid{deal()};
    for (std::size_t d = 0; d < grid.extents.size(); ++d) grid.periodic.push_back(number(0, 1) == 1);
    const RankMap map = grid.map(torus_of(torus, 1));
    ASSERT_NE(find(map, "folded boxes"), nullptr);
    EXPECT_EQ(map.cost().byte_hops, count_hops(grid, torus, map.host_at));
    for (const auto& candidate : map.candidates) EXPECT_LE(map.cost().byte_hops, candidate.cost.byte_hops);
  }
}

}  // namespace
