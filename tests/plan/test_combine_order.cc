// Transfers that combine into the same element do so in the order of the round, whatever arrives first: plans compared
// with the naive executor, which goes through the transfers one by one.
#include "src/plan/program/combine_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "onehop/collectives/collectives.h"
#include "onehop/patterns.h"
#include "onehop/verify.h"
#include "tests/support/plan_check.h"
#include "tests/support/random_schedule.h"
#include "tests/support/ranks.h"

namespace onehop {
namespace {

using testing::cut;
using testing::expect_plan_does;
using testing::Memory;
using testing::on_threads;
using testing::random_numbers;

Transfer sum(int from, const Slice& source, int to, const Slice& target) {
  return {{from, 0, source}, {to, 0, target}, Combine::add, Codec::raw};
}

Schedule schedule_of(int ranks, std::int64_t elements, std::vector<Transfer> transfers) {
  return {"sums", ranks, {{"x", 8, ElementType::float64, {elements}}}, {Round{std::move(transfers)}}, {}};
}

// With whole messages in slots, and with one slot of `slot_bytes`.
void expect_right(const Schedule& schedule, std::int64_t slot_bytes) {
  verify_or_throw(schedule);
  const Memory memory = random_numbers(schedule, 1);
  on_threads(schedule.ranks, [&](const Group& group) {
    expect_plan_does(group, schedule, schedule, {}, memory);
    expect_plan_does(group, schedule, schedule.part(group.rank()), cut(1, slot_bytes, slot_bytes / 3), memory);
  });
}

// Every rank, itself included, adds to the same elements of every rank; to other elements in another order.
TEST(CombineOrder, EveryOrderOnTwoToFiveRanks) {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    std::vector<int> order(static_cast<std::size_t>(ranks));
    std::iota(order.begin(), order.end(), 0);
    std::vector<Transfer> transfers;
    std::int64_t target = 10;
    do {
      for (int to = 0; to < ranks; ++to) {
        for (const int from : order) transfers.push_back(sum(from, Slice::range(0, 3), to, Slice::range(target, 3)));
      }
      target += 3;
    } while (std::ranges::next_permutation(order).found);
    expect_right(schedule_of(ranks, target, transfers), target);
  }
}

// Transfers of two senders and of the rank itself alternate in the round, so a message is unpacked in several parts,
// some of them in the middle of a chunk.
TEST(CombineOrder, TransfersOfAMessageWaitForThoseOfOthers) {
  const Slice source = Slice::range(0, 50);
  std::vector<Transfer> transfers;
  for (int i = 0; i < 9; ++i) {
    transfers.push_back(sum(2 - i % 3, source, 0, Slice::range(60 + 10 * (i % 4), 50)));
  }
  expect_right(schedule_of(3, 200, std::move(transfers)), 250);
}

// The faces of a last dimension share cache lines and would take turns on the wire, but for the face of another rank
// between them.
TEST(CombineOrder, FacesThatShareLines) {
  const auto face = [](std::int64_t first) {
    return Slice::box(first, std::array<std::int64_t, 1>{400}, std::array<std::int64_t, 1>{20});
  };
  expect_right(schedule_of(3, 8020,
                           {sum(1, face(0), 0, face(0)), sum(2, face(5), 0, face(20)), sum(1, face(19), 0, face(39)),
                            sum(0, face(7), 0, face(0)), sum(2, face(9), 0, face(39)), sum(1, face(3), 0, face(1))}),
               1500);
  expect_right(schedule_of(2, 8020, {sum(1, face(0), 0, face(20)), sum(1, face(19), 0, face(0))}), 1500);
}

// On each of three ranks, sums wait for the sums of the next rank and lie behind an exchange in place with the last.
TEST(CombineOrder, ExchangesBesideSums) {
  std::vector<Transfer> transfers;
  for (int i = 0; i < 3; ++i) {
    const int next = (i + 1) % 3;
    transfers.push_back(sum(i, Slice::range(0, 100), next, Slice::range(300, 100)));
    transfers.push_back(sum(next, Slice::range(0, 90), i, Slice::range(310, 90)));
    const Slice here = Slice::range(100, 100);
    const Slice there = Slice::range(200, 100);
    transfers.push_back({{i, 0, here}, {next, 0, there}});
    transfers.push_back({{next, 0, there}, {i, 0, here}});
  }
  expect_right(schedule_of(3, 400, transfers), 300);
  std::ranges::reverse(transfers);
  expect_right(schedule_of(3, 400, transfers), 300);
}

TEST(CombineOrder, OnlyWhereElementsAreShared) {
  const auto order = [](const std::vector<Transfer>& transfers) {
    const Schedule schedule = schedule_of(3, 200, transfers);
    return detail::CombineOrder(schedule, detail::sort_transfers(schedule, 0).front(), 0);
  };
  const auto every_third = [](std::int64_t first) {
    return Slice::box(first, std::array<std::int64_t, 1>{20}, std::array<std::int64_t, 1>{3});
  };
  const Slice source = Slice::range(100, 20);
  const auto apart = order({sum(1, source, 0, every_third(0)), sum(2, source, 0, every_third(1)),
                            sum(0, source, 0, every_third(2)), sum(1, source, 0, every_third(0))});
  EXPECT_FALSE(apart.keeps_message(1) || apart.keeps_message(2)) << "the elements of one rank only";
  const std::vector<Transfer> shared = {sum(1, source, 0, every_third(0)), sum(2, source, 0, every_third(1)),
                                        sum(0, source, 0, Slice::range(3, 20)),
                                        sum(0, source, 0, Slice::range(70, 20))};
  const auto some = order({shared[0], shared[2], shared[3]});
  EXPECT_TRUE(some.keeps_message(1));
  EXPECT_FALSE(some.keeps_message(2));
  EXPECT_TRUE(order(shared).keeps_message(2));
}

// The pattern, run by plans, gives all ranks the bits of the collective operation.
TEST(CombineOrder, AllReduceAsCollectives) {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    for (const ReduceAlgorithm algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
      const Schedule schedule = allreduce({ranks, 1000, ElementType::float32, Combine::add, algorithm});
      const Memory memory = random_numbers(schedule, 3);
      on_threads(ranks, [&](const Group& group) {
        auto arrays = memory[static_cast<std::size_t>(group.rank())];
        const std::vector<std::span<std::byte>> spans(arrays.begin(), arrays.end());
        Plan(group, schedule, spans).run();
        std::vector<std::byte> wanted(4000);
        const collectives::Collectives collectives(group);
        collectives.allreduce({.elements = 1000, .type = ElementType::float32}).run(arrays[0], wanted);
        EXPECT_EQ(arrays[1], wanted) << ranks << " ranks, " << to_string(algorithm);
      });
    }
  }
}

// Whatever `verify` accepts runs and is right: any mixture of sums, minima, exchanges in place, copies and codecs.
TEST(CombineOrder, RandomSchedulesThatVerifyAccepts) {
  testing::RandomVerifiedSchedules random(7);
  const PlanOptions cuts[] = {PlanOptions{}, cut(1, 100, 30), cut(2, 150, 150)};
  for (int trial = 0; trial < 40; ++trial) {
    const Schedule schedule = random.next();
    SCOPED_TRACE(schedule.to_json());
    const Memory memory = random_numbers(schedule, static_cast<unsigned>(trial));
    on_threads(schedule.ranks, [&](const Group& group) {
      const Schedule given = trial % 2 == 0 ? schedule : schedule.part(group.rank());
      expect_plan_does(group, schedule, given, cuts[trial % 3], memory);
    });
  }
}

}  // namespace
}  // namespace onehop
