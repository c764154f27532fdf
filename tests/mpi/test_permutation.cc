// Permutations of index bits through MPI, where every rank's part is staged, and the results of the benchmark's MPI
// candidate.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "bench/native/mpi/peers.h"
#include "onehop/count.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "tests/mpi/world.h"
#include "tests/support/naive_execute.h"

namespace onehop {
namespace {

using testing::world;

PermuteBitsSpec random_spec(std::mt19937& random, int rank_bits) {
  PermuteBitsSpec spec{.bits = 10, .local_bits = 10 - rank_bits, .permutation = std::vector<int>(10)};
  std::iota(spec.permutation.begin(), spec.permutation.end(), 0);
  std::shuffle(spec.permutation.begin(), spec.permutation.end(), random);
  return spec;
}

TEST(MpiPermutation, AnyOfThemInPlace) {
  if (!std::has_single_bit(static_cast<unsigned>(world().size()))) GTEST_SKIP() << "for a power of two of ranks";
  std::mt19937 random(1);
  const auto rank = static_cast<std::size_t>(world().rank());
  for (int i = 0; i < 6; ++i) {
    const PermuteBitsSpec spec = random_spec(random, std::countr_zero(static_cast<unsigned>(world().size())));
    const Schedule schedule = permute_bits(spec);
    testing::Memory memory = testing::allocate(schedule);
    for (auto& one : memory) {
      for (std::byte& b : one[0]) b = static_cast<std::byte>(random());
    }
    std::vector<std::byte> mine = memory[rank][0];
    const std::vector<std::span<std::byte>> arrays = {mine};
    Plan plan(world(), schedule, arrays, {.transport = TransportKind::mpi, .slot_bytes = i % 2 == 0 ? 0 : 500});
    for (int run = 0; run < 2; ++run) {
      testing::naive_execute(schedule, memory);
      plan.run();
      ASSERT_EQ(mine, memory[rank][0]) << "run " << run;
    }
    const RankCount counted = count(schedule).ranks[rank];
    EXPECT_EQ(plan.counters().bytes_sent, 2 * counted.bytes_sent);
    EXPECT_EQ(plan.counters().bytes_received, 2 * counted.bytes_received);
    EXPECT_EQ(plan.counters().bytes_local, 2 * counted.bytes_local);
  }
}

TEST(MpiPermutation, TheCandidateDoesTheSame) {
  if (world().size() != 4) GTEST_SKIP() << "for four ranks";
  const std::vector<std::pair<int, int>> pairs = {{0, 9}, {5, 8}};
  PermuteBitsSpec spec{.bits = 10, .local_bits = 8, .permutation = {9, 1, 2, 3, 4, 8, 6, 7, 5, 0}};
  const Schedule schedule = permute_bits(spec);
  testing::Memory memory = testing::allocate(schedule);
  std::mt19937 random(2);
  for (auto& one : memory) {
    for (std::byte& b : one[0]) b = static_cast<std::byte>(random());
  }
  const auto rank = static_cast<std::size_t>(world().rank());
  std::vector<std::byte> mine = memory[rank][0];
  const auto swaps = bench::mpi_swaps(world(), mine, spec, pairs);
  ASSERT_TRUE(swaps);
  testing::naive_execute(schedule, memory);
  swaps();
  EXPECT_EQ(mine, memory[rank][0]);
}

}  // namespace
}  // namespace onehop
