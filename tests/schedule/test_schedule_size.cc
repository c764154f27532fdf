// Short specifications of schedules that no memory holds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "onehop/patterns.h"

namespace onehop {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 40;

class ScheduleSize : public ::testing::Test {
 protected:
  ScheduleSize() { setenv("ONEHOP_TEST_FREE_MEMORY", "100000000", 1); }
  ~ScheduleSize() override { unsetenv("ONEHOP_TEST_FREE_MEMORY"); }

  template <class Make>
  static void expect_refused(const Make& make, const std::string& words) {
    try {
      static_cast<void>(make());
      ADD_FAILURE() << "made; expected: " << words;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  static HaloSpec halo_of(std::vector<std::int64_t> extents, std::vector<int> grid, std::int64_t width, bool periodic) {
    const std::size_t dims = extents.size();
    return {.extents = std::move(extents),
            .grid = std::move(grid),
            .widths = std::vector<std::pair<std::int64_t, std::int64_t>>(dims, {width, width}),
            .periodic = std::vector<bool>(dims, periodic),
            .corners = true};
  }

  // The bits of an index in opposite order.
  static PermuteBitsSpec reversal(int bits, int local_bits) {
    PermuteBitsSpec spec{.bits = bits, .local_bits = local_bits, .permutation = std::vector<int>(bits)};
    std::iota(spec.permutation.rbegin(), spec.permutation.rend(), 0);
    return spec;
  }
};

TEST_F(ScheduleSize, AHaloOfTooManyPieces) {
  for (const std::optional<int> rank : {std::optional<int>(), std::optional<int>(0)}) {
    expect_refused([&] { return halo(halo_of({8}, {2}, huge, true), rank); }, "cuts of ghost layers");
    expect_refused([&] { return halo(halo_of({huge}, {1 << 20}, huge, false), rank); }, "cuts of ghost layers");
    expect_refused([&] { return halo(halo_of({8, 8, 8, 8}, {2, 2, 2, 2}, 400, true), rank); }, "transfers");
  }
  expect_refused([&] { return halo(halo_of({huge}, {1 << 17}, 1, true)); }, "transfers");
  EXPECT_EQ(halo(halo_of({huge}, {2}, huge, false), 0).rounds[0].transfers.size(), 2U);
}

TEST_F(ScheduleSize, PairsOfTooManyRanks) {
  expect_refused([] { return allgather(1 << 20, 1, 8); }, "1.09951e+12 transfers, which take ");
  expect_refused([] { return allreduce({.ranks = 1 << 20, .elements = 1}); }, "transfers");
  expect_refused([] { return reduce_scatter({.ranks = 1 << 20, .elements = 1}, 3); }, "one part (rank) at a time");
  expect_refused([] { return broadcast(1 << 20, 1, 8, 0); }, "transfers");
  expect_refused([] { return broadcast(1 << 21, 1, 8, 0); }, "expected 1 to 1048576 ranks, found 2097152");
  EXPECT_EQ(allgather(4096, 1, 8, 7).rounds[0].transfers.size(), 2U * 4095);
}

TEST_F(ScheduleSize, PermutationsOfTooManySlices) {
  expect_refused([] { return permute_bits(reversal(57, 57)); }, "transfers");
  expect_refused([] { return permute_bits(reversal(40, 20), 0); }, "transfers");
  expect_refused([] { return permute_bits(reversal(24, 8)); }, "transfers");
  expect_refused([] { return permute_bits(reversal(60, 32)); }, "expected 1 to 1048576 ranks");
  expect_refused([] { return permute_bits_one_swap_at_a_time(reversal(57, 57)); }, "transfers");
  EXPECT_EQ(permute_bits(reversal(24, 16), 0).rounds.size(), 1U);
}

}  // namespace
}  // namespace onehop
