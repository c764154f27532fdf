#include <gtest/gtest.h>

#include <ctime>

#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/verify.h"
#include "tests/support/naive_execute.h"
#include "tests/support/random_halo.h"
#include "tests/support/thrown.h"
#include "tests/support/two_to.h"

namespace onehop {
namespace {

using testing::two_to;

using testing::Memory;

HaloSpec cube(std::int64_t extent, int grid, std::size_t dims, std::int64_t width, bool corners) {
  HaloSpec spec;
  spec.extents.assign(dims, extent);
  spec.grid.assign(dims, grid);
  spec.widths.assign(dims, {width, width});
  spec.periodic.assign(dims, true);
  spec.corners = corners;
  return spec;
}

// tests/schedule/test_halo.py compares what the exchange moves with NumPy's indices on the whole array.
TEST(Halo, PartsOfTheRanksMakeTheWhole) {
  std::mt19937 random(20250101);
  for (int i = 0; i < 400; ++i) {
    const HaloSpec spec = testing::random_halo(random);
    SCOPED_TRACE(::testing::PrintToString(spec));
    const Schedule schedule = halo(spec);
    const auto violations = verify(schedule);
    ASSERT_TRUE(violations.empty()) << violations.front().message;
    ASSERT_LE(count(schedule).rounds, 1);
    std::vector<Schedule> parts;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      parts.push_back(halo(spec, rank));
      ASSERT_EQ(parts.back(), schedule.part(rank)) << "rank " << rank;
    }
    ASSERT_EQ(merge(parts), schedule);
  }
}

TEST(Halo, WidthsBeyondABlockComeFromFurtherRanks) {
  HaloSpec spec = cube(8, 4, 1, 3, false);
  const Count counted = count(halo(spec));
  ASSERT_EQ(counted.ranks.size(), 4U);
  // Two sites from each direct neighbour on either side and one on either side from the rank opposite.
  for (const RankCount& rank : counted.ranks) {
    EXPECT_EQ(rank.messages_received, 3);
    EXPECT_EQ(rank.bytes_received, 6 * 8);
  }
  spec.widths = {{21, 0}};  // round the whole array more than twice
  EXPECT_TRUE(verify(halo(spec)).empty());
}

TEST(Halo, BlocksMayBeEmpty) {
  HaloSpec spec = cube(3, 5, 2, 1, true);
  EXPECT_TRUE(verify(halo(spec)).empty());
  EXPECT_EQ(halo_block(spec, 24).extents, (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(halo_block(spec, 24).shape, (std::vector<std::int64_t>{2, 2}));
  spec.extents = {0, 4};
  EXPECT_TRUE(verify(halo(spec)).empty());
}

TEST(Halo, BlocksSplitTheExtent) {
  HaloSpec spec = cube(11, 4, 1, 1, false);
  std::vector<std::int64_t> sizes;
  std::int64_t next = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const HaloBlock block = halo_block(spec, rank);
    EXPECT_EQ(block.start.front(), next);
    EXPECT_EQ(block.coords.front(), rank);
    EXPECT_EQ(block.shape.front(), block.extents.front() + 2);
    sizes.push_back(block.extents.front());
    next += sizes.back();
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{3, 3, 3, 2}));
  EXPECT_EQ(halo(spec).arrays.front().elements, (std::vector<std::int64_t>{5, 5, 5, 4}));
  EXPECT_EQ(halo_block(cube(4, 2, 3, 1, false), 6).coords, (std::vector<int>{1, 1, 0}));
}

TEST(Halo, AllFieldsForOneNeighbourAreOneMessage) {
  HaloSpec spec = cube(8, 2, 3, 1, true);
  spec.element_bytes = {8, 24, 1};
  const Count counted = count(halo(spec));
  EXPECT_EQ(counted.messages, 8 * 7);
  // None of the 6^3 - 4^3 ghosts is the rank's own: on a grid of 2, every ghost belongs to another rank.
  EXPECT_EQ(counted.ranks[0].bytes_received, (6 * 6 * 6 - 4 * 4 * 4) * 33);
}

TEST(Halo, SizesBeyond2To31) {
  HaloSpec spec = cube(two_to(21), 4, 2, 1, true);
  spec.element_bytes = {two_to(13)};
  const Schedule schedule = halo(spec);
  const std::int64_t edge = two_to(19);
  EXPECT_EQ(schedule.arrays.front().elements.front(), (edge + 2) * (edge + 2));
  EXPECT_EQ(count(schedule).ranks[5].bytes_received, (4 * edge + 4) * two_to(13));
}

TEST(Halo, AThousandRanksTakeMilliseconds) {
  const HaloSpec spec = cube(320, 10, 3, 1, true);
  const std::clock_t begin = std::clock();  // of this process alone: others may keep the machine busy
  const Schedule schedule = halo(spec);
  const Count counted = count(schedule);
  const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_EQ(schedule.rounds.front().transfers.size(), 26000U);
  EXPECT_EQ(counted.messages, 26000);
  EXPECT_EQ(counted.bytes, std::int64_t{1000} * (34 * 34 * 34 - 32 * 32 * 32) * 8);
  // Some 20 ms; under a sanitizer half a second, and anything quadratic far longer.
  EXPECT_LT(took, 3.0);
}

void expect_bad(const HaloSpec& spec, const std::string& message) {
  testing::expect_says<BadInput>([&] { (void)halo(spec); }, message);
}

TEST(Halo, BadInputSaysWhatAndWhere) {
  const HaloSpec good = cube(4, 2, 2, 1, false);
  const auto bad = [&](auto&& change, const std::string& message) {
    HaloSpec spec = good;
    change(spec);
    expect_bad(spec, message);
  };
  bad([](HaloSpec& s) { s.extents.clear(); }, "expected 1 to 6 dimensions, found 0");
  bad([](HaloSpec& s) { s = cube(2, 1, 7, 1, false); }, "expected 1 to 6 dimensions, found 7");
  bad([](HaloSpec& s) { s.grid.pop_back(); }, "expected ranks (grid) for each of the 2 dimensions, found 1");
  bad([](HaloSpec& s) { s.widths.pop_back(); }, "expected widths for each");
  bad([](HaloSpec& s) { s.periodic.push_back(true); }, "expected periodic for each");
  bad([](HaloSpec& s) { s.extents[1] = -4; }, "expected an extent of 0 or more in dimension 1, found -4");
  bad([](HaloSpec& s) { s.grid[0] = 0; }, "expected 1 rank or more in dimension 0, found 0");
  bad([](HaloSpec& s) { s.widths[1] = {1, -2}; }, "expected widths of 0 or more in dimension 1, found -2");
  bad([](HaloSpec& s) { s.element_bytes.clear(); }, "one field or more");
  bad([](HaloSpec& s) { s.element_bytes = {8, 0}; }, "expected element_bytes of 1 or more, found 0");
  bad([](HaloSpec& s) { s.grid = {65536, 65536}; }, "at most 1048576 ranks");
  bad([](HaloSpec& s) { s.extents = {two_to(40), two_to(40)}; }, "below 2^63");
  bad([](HaloSpec& s) { s.extents = {two_to(30), two_to(33)}; }, "the bytes of a halo's local array");
  EXPECT_THROW((void)halo(good, 4), BadInput);
  EXPECT_THROW((void)halo(good, -1), BadInput);
  EXPECT_THROW((void)halo_block(good, 4), BadInput);
}

TEST(Allgather, EveryBlockReachesEveryRank) {
  for (const int ranks : {1, 2, 5}) {
    const Schedule schedule = allgather(ranks, 3, 2);
    EXPECT_TRUE(verify(schedule).empty());
    Memory memory = testing::allocate(schedule);
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::size_t byte = 0; byte < 6; ++byte) {
        const auto at = static_cast<std::size_t>(rank) * 6 + byte;
        memory[static_cast<std::size_t>(rank)][0][at] = static_cast<std::byte>(at + 1);
      }
    }
    testing::naive_execute(schedule, memory);
    for (const auto& arrays : memory) {
      ASSERT_EQ(arrays[0].size(), static_cast<std::size_t>(ranks) * 6);
      for (std::size_t at = 0; at < arrays[0].size(); ++at) EXPECT_EQ(arrays[0][at], static_cast<std::byte>(at + 1));
    }
    std::vector<Schedule> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      parts.push_back(allgather(ranks, 3, 2, rank));
      EXPECT_EQ(parts.back(), schedule.part(rank));
    }
    EXPECT_EQ(merge(parts), schedule);
    EXPECT_EQ(count(schedule).messages, ranks * (ranks - 1));
    EXPECT_EQ(count(schedule).bytes, ranks * (ranks - 1) * 6);
  }
  EXPECT_EQ(count(allgather(3, 0, 8)).messages, 0);
  EXPECT_THROW((void)allgather(0, 1, 1), BadInput);
  EXPECT_THROW((void)allgather(2, -1, 1), BadInput);
  EXPECT_THROW((void)allgather(2, 1, 0), BadInput);
  EXPECT_THROW((void)allgather(2, 1, 1, 2), BadInput);
  EXPECT_THROW((void)allgather(2, two_to(61), 4), BadInput);
}

}  // namespace
}  // namespace onehop
