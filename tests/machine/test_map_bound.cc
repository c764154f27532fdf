// Lower bounds of the bytes between hosts, against all sets of positions of small grids, and against the maps found.
#include "machine/mapping/slice_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "onehop/machine/mapping.h"

namespace {

using onehop::Grid;
using onehop::HostLayout;
using onehop::RankMap;
using Integers = std::vector<std::int64_t>;

// Pairs of neighbours (a periodic dimension of 2 has each pair twice) with the bytes of a message.
struct Pair {
  int a, b;
  std::int64_t bytes;
};

std::vector<Pair> pairs_of(const Grid& grid) {
  std::vector<Pair> pairs;
  const auto positions = static_cast<int>(grid.positions());
  int stride = positions;
  for (std::size_t d = 0; d < grid.extents.size(); ++d) {
    const auto extent = static_cast<int>(grid.extents[d]);
    stride /= extent;
    for (int p = 0; p < positions && extent > 1; ++p) {
      const int at = p / stride % extent;
      const std::int64_t bytes = grid.bytes.empty() ? 1 : grid.bytes[d];
      if (at + 1 < extent) pairs.push_back({p, p + stride, bytes});
      if (at + 1 == extent && grid.periodic[d]) pairs.push_back({p, p - at * stride, bytes});
    }
  }
  return pairs;
}

// The least bytes between a set of n positions and the others, in both directions, for every n: by trying all sets.
Integers least_between(const Grid& grid) {
  const std::vector<Pair> pairs = pairs_of(grid);
  const auto positions = static_cast<unsigned>(grid.positions());
  Integers least(positions + 1, INT64_MAX);
  for (unsigned set = 0; set < 1U << positions; ++set) {
    std::int64_t bytes = 0;
    for (const Pair& pair : pairs) bytes += (set >> pair.a & 1U) != (set >> pair.b & 1U) ? 2 * pair.bytes : 0;
    const auto size = static_cast<std::size_t>(std::popcount(set));
    least[size] = std::min(least[size], bytes);
  }
  return least;
}

std::int64_t slices(const Grid& grid, const Integers& sizes, std::int64_t target) {
  return onehop::detail::slice_bound(onehop::detail::GridShape(grid), sizes, target).value();
}

TEST(MapBound, IsExactForTwoHosts) {
  for (const Integers& extents :
       {Integers{4, 4}, Integers{3, 5}, Integers{2, 7}, Integers{13}, Integers{3, 2, 3}, Integers{2, 2, 2, 2}}) {
    for (unsigned around = 0; around < 1U << extents.size(); ++around) {
      Grid grid{extents};
      for (std::size_t d = 0; d < extents.size(); ++d) grid.periodic.push_back((around >> d & 1U) != 0);
      const Integers least = least_between(grid);
      const std::int64_t positions = grid.positions();
      for (std::int64_t n = 1; n < positions; ++n) {
        const std::int64_t exact = least[static_cast<std::size_t>(n)];
        // One search per grid goes on as long as it may, and must not pass the exact value.
        const std::int64_t target = n == positions / 3 ? INT64_MAX : exact;
        EXPECT_EQ(slices(grid, {n, positions - n}, target), exact)
            << n << " of " << positions << " positions, periodic " << around;
      }
    }
  }
}

// All maps of up to 12 positions to 3 hosts, with messages of unequal sizes.
TEST(MapBound, HoldsForEveryMapToThreeHosts) {
  std::mt19937 random(3);
  for (const Integers& extents :
       {Integers{3, 4}, Integers{2, 5}, Integers{2, 2, 3}, Integers{11}, Integers{1, 3, 3}, Integers{2, 2, 2}}) {
    for (int i = 0; i < 4; ++i) {
      Grid grid{extents};
      for (std::size_t d = 0; d < extents.size(); ++d) {
        grid.periodic.push_back(random() % 2 == 0);
        grid.bytes.push_back(i == 0 ? 6 : static_cast<std::int64_t>(random() % 5) * 3);
      }
      const std::vector<Pair> pairs = pairs_of(grid);
      const auto positions = static_cast<int>(grid.positions());
      const std::int64_t second = 1 + static_cast<std::int64_t>(random() % 4);
      const Integers sizes{2, second, positions - 2 - second};
      std::vector<int> host_at = HostLayout::of_sizes(sizes).host_of_rank;
      std::int64_t least = INT64_MAX;
      do {
        std::int64_t bytes = 0;
        for (const Pair& pair : pairs) {
          const int here = host_at[static_cast<std::size_t>(pair.a)];
          bytes += here != host_at[static_cast<std::size_t>(pair.b)] ? 2 * pair.bytes : 0;
        }
        least = std::min(least, bytes);
      } while (std::ranges::next_permutation(host_at).found);
      EXPECT_LE(slices(grid, sizes, INT64_MAX), least);
      EXPECT_EQ(grid.map(HostLayout::of_sizes(sizes)).cost().bytes_between_hosts, least);
    }
  }
}

TEST(MapBound, ProvesMapsOptimalThatAreFarAboveTheSurfaceBound) {
  struct Case {
    Integers extents;
    std::vector<bool> periodic;
    std::int64_t per_host;
    std::int64_t least;
  };
  for (const Case& each :
       {Case{{4, 4}, {false, false}, 11, 10}, Case{{6, 7}, {true, false}, 36, 12},
        Case{{7, 34}, {false, false}, 48, 64}, Case{{6, 3, 5, 6}, {false, false, false, false}, 36, 864}}) {
    const Grid grid{each.extents, each.periodic};
    Integers sizes;
    for (std::int64_t left = grid.positions(); left > 0; left -= sizes.back()) {
      sizes.push_back(std::min(left, each.per_host));
    }
    const RankMap map = grid.map(HostLayout::of_sizes(sizes));
    EXPECT_EQ(map.lower_bound, each.least);
    EXPECT_EQ(map.cost().edges_between_hosts, each.least);
  }
}

TEST(MapBound, MapsOfOddGridsAreWithinFivePercent) {
  struct Case {
    Integers extents;
    std::vector<bool> periodic;
    std::int64_t per_host;
  };
  for (const Case& each : {Case{{13, 11, 7}, {false, false, false}, 13}, Case{{10, 7, 9}, {false, false, false}, 8},
                           Case{{7, 34}, {false, false}, 48}, Case{{40, 23}, {true, false}, 24},
                           Case{{13, 4, 11}, {false, false, true}, 16}, Case{{12, 8, 9}, {true, false, false}, 64},
                           Case{{6, 4, 6, 4}, {false, false, false, true}, 4}}) {
    const Grid grid{each.extents, each.periodic};
    Integers sizes;
    for (std::int64_t left = grid.positions(); left > 0; left -= sizes.back()) {
      sizes.push_back(std::min(left, each.per_host));
    }
    const RankMap map = grid.map(HostLayout::of_sizes(sizes));
    ASSERT_TRUE(map.lower_bound);
    const std::int64_t edges = map.cost().edges_between_hosts;
    EXPECT_GE(edges, *map.lower_bound);
    EXPECT_LE(static_cast<double>(edges), 1.05 * static_cast<double>(*map.lower_bound)) << each.extents[0];
  }
}

TEST(MapBound, IsNothingForHostsOfManyPositions) {
  const onehop::detail::GridShape shape(Grid{{100, 100}});
  EXPECT_FALSE(onehop::detail::slice_bound(shape, Integers{5000, 5000}, INT64_MAX).has_value());
}

}  // namespace
