// Permutations of index bits as plans: in arrays that the ranks share, through channels, and mixed with other rounds,
// compared with the naive executor and the counters. In most tests ranks are threads, so that the thread sanitizer
// sees the exchange in place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "onehop/count.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "onehop/verify.h"
#include "src/schedule/bit_permutation.h"
#include "tests/support/naive_execute.h"
#include "tests/support/plan_check.h"
#include "tests/support/random_permutation.h"
#include "tests/support/ranks.h"

namespace onehop {
namespace {

using testing::Memory;
using testing::on_ranks;
using testing::on_threads;
using testing::random_memory;
using testing::random_permutation;
using testing::RandomPermutation;

// Runs the plan on this rank, in memory of the group or in other memory.
void expect_plan_does(const Group& group, const Schedule& schedule, const PlanOptions& options, bool shared,
                      const Memory& memory) {
  const Schedule part = schedule.part(group.rank());
  const testing::SharedCopies copies(group, memory[static_cast<std::size_t>(group.rank())]);
  if (!shared) return testing::expect_plan_does(group, schedule, part, options, memory);
  testing::expect_plan_moves(group, schedule, part, options, memory, copies.arrays);
  if (options.transport == TransportKind::automatic) {
    EXPECT_EQ(Plan(group, part, copies.arrays, options).staging_bytes(), 0);
  }
}

TEST(Permutation, VerifiedAndSplitInPartsWhateverItIs) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const RandomPermutation one = random_permutation(random, 10, 4);
    const Schedule schedule = permute_bits(one.spec);
    const auto violations = verify(schedule);
    ASSERT_TRUE(violations.empty()) << violations.front().message;
    std::vector<Schedule> parts;
    for (int rank = 0; rank < one.ranks(); ++rank) {
      parts.push_back(permute_bits(one.spec, rank));
      ASSERT_EQ(parts.back(), schedule.part(rank));
      ASSERT_TRUE(verify(parts.back()).empty());
    }
    ASSERT_EQ(merge(parts), schedule);
    ASSERT_EQ(Schedule::from_json(schedule.to_json()), schedule);
  }
}

TEST(Permutation, FusedSwapsMoveTheirShareOfBytes) {
  for (int rank_bits = 1; rank_bits <= 6; ++rank_bits) {
    for (int eta = 1; eta <= rank_bits; ++eta) {
      PermuteBitsSpec spec{.bits = rank_bits + 8, .local_bits = 8, .permutation = {}};
      for (int bit = 0; bit < spec.bits; ++bit) {
        spec.permutation.push_back(bit < eta ? bit + 8 : bit >= 8 && bit < 8 + eta ? bit - 8 : bit);
      }
      const std::int64_t fused = count(permute_bits(spec)).bytes;
      const std::int64_t slow = count(permute_bits_one_swap_at_a_time(spec)).bytes;
      EXPECT_EQ(fused * eta << eta, slow * 2 * ((1 << eta) - 1)) << eta << " of " << rank_bits;
    }
  }
}

TEST(Permutation, InPlaceOrStagedBetweenThreads) {
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    const bool shared = i % 2 == 0;
    const RandomPermutation one = random_permutation(random, 10, 3);
    const Schedule schedule = permute_bits(one.spec);
    const Memory memory = random_memory(schedule, static_cast<unsigned>(i));
    PlanOptions options;
    if (!shared) options = {.slots = 1 + i % 3, .slot_bytes = 64 + 40 * (i % 4)};
    on_threads(one.ranks(), [&](const Group& group) { expect_plan_does(group, schedule, options, shared, memory); });
  }
}

// Messages whose elements share cache lines are packed and unpacked in lockstep, in many chunks and fragments.
TEST(Permutation, StagedWithTheLowestBits) {
  for (const int pairs : {2, 3}) {
    for (const std::int64_t element_bytes : {4, 16}) {
      PermuteBitsSpec spec{.bits = 13, .local_bits = 10, .permutation = {}, .element_bytes = element_bytes};
      for (int bit = 0; bit < spec.bits; ++bit) {
        spec.permutation.push_back(bit < pairs ? bit + 10 : bit >= 10 && bit < 10 + pairs ? bit - 10 : bit);
      }
      const Schedule schedule = permute_bits(spec);
      const Memory memory = random_memory(schedule, 8);
      on_threads(8, [&](const Group& group) {
        for (const int slots : {1, 2, 8}) {
          const PlanOptions options{.slots = slots, .slot_bytes = 256, .chunk_bytes = 64};
          expect_plan_does(group, schedule, options, false, memory);
        }
        // One rank cuts its messages differently.
        expect_plan_does(group, schedule, {.slots = 1, .slot_bytes = group.rank() == 3 ? 192 : 256}, false, memory);
        expect_plan_does(group, schedule, {}, false, memory);
      });
    }
  }
}

TEST(Permutation, SeveralRoundsFollowEachOther) {
  std::mt19937 random(5);
  for (int i = 0; i < 10; ++i) {
    RandomPermutation one = random_permutation(random, 9, 3);
    const Schedule schedule = permute_bits_one_swap_at_a_time(one.spec);
    const Memory memory = random_memory(schedule, static_cast<unsigned>(i));
    on_threads(one.ranks(), [&](const Group& group) { expect_plan_does(group, schedule, {}, i % 2 == 0, memory); });
  }
}

TEST(Permutation, OnRanksThatAreProcesses) {
  std::mt19937 random(6);
  for (const int rank_bits : {1, 2, 3}) {
    RandomPermutation one = random_permutation(random, 12, 0);
    one.spec.bits = 12;
    one.spec.local_bits = 12 - rank_bits;
    one.spec.permutation.resize(12);
    std::iota(one.spec.permutation.begin(), one.spec.permutation.end(), 0);
    std::shuffle(one.spec.permutation.begin(), one.spec.permutation.end(), random);
    const Schedule schedule = permute_bits(one.spec);
    const Memory memory = random_memory(schedule, 6);
    on_ranks(one.ranks(), [&](const Group& group) {
      expect_plan_does(group, schedule, {}, true, memory);
      expect_plan_does(group, schedule, {.slots = 2, .slot_bytes = 1000}, false, memory);
    });
  }
}

TEST(Permutation, OneRankWithoutASharedArrayStagesItsOwnCyclesOnly) {
  const PermuteBitsSpec spec{.bits = 8, .local_bits = 6, .permutation = {6, 1, 2, 3, 4, 7, 0, 5}};
  const Schedule schedule = permute_bits(spec);
  const Memory memory = random_memory(schedule, 7);
  on_threads(4, [&](const Group& group) {
    const PlanOptions options{.transport = TransportKind::shared_memory, .slot_bytes = 4096};
    expect_plan_does(group, schedule, options, group.rank() != 1, memory);
  });
}

TEST(Permutation, RanksWithDifferentPermutationsAreAMismatch) {
  on_threads(2, [](const Group& group) {
    PermuteBitsSpec spec{.bits = 4, .local_bits = 3, .permutation = {3, 1, 2, 0}};
    if (group.rank() == 1) spec.permutation = {0, 3, 2, 1};
    std::vector<std::byte> state(8 * 16);
    const std::vector<std::span<std::byte>> arrays = {state};
    EXPECT_THROW(Plan(group, permute_bits(spec), arrays), Mismatch);
  });
}

TEST(Permutation, ARoundThatIsNotItsPermutationIsRefused) {
  Schedule schedule = permute_bits({.bits = 4, .local_bits = 4, .permutation = {1, 0, 3, 2}});
  std::vector<std::byte> state(16 * 16);
  const std::vector<std::span<std::byte>> arrays = {state};
  EXPECT_NO_THROW(Plan(Group::alone(), schedule, arrays).run());
  schedule.rounds[0].transfers.pop_back();
  EXPECT_THROW(Plan(Group::alone(), schedule, arrays), BadInput);
  ASSERT_FALSE(verify(schedule).empty());
  EXPECT_NE(verify(schedule).front().message.find("permute_bits"), std::string::npos);
  schedule.rounds[0].permutation->to = {1, 0, 3, 3};
  EXPECT_NE(verify(schedule).front().message.find("found 3 twice"), std::string::npos);
}

TEST(Permutation, APeerThatClosesItsGroupIsLost) {
  on_threads(2, [](const Group& group) {
    const PermuteBitsSpec spec{.bits = 4, .local_bits = 3, .permutation = {3, 1, 2, 0}};
    SharedArray state = group.allocate(8 * 16);
    const std::vector<std::span<std::byte>> arrays = {state.bytes()};
    Plan plan(group, permute_bits(spec), arrays);
    plan.run();
    if (group.rank() == 1) return;
    try {
      plan.run();
      ADD_FAILURE() << "rank 1 makes one run only";
    } catch (const PeerLost& error) {
      EXPECT_EQ(error.rank(), 1);
      EXPECT_NE(std::string(error.what()).find("an exchange in place with rank 1"), std::string::npos) << error.what();
    }
  });
}

}  // namespace
}  // namespace onehop
