// Plans compared with a naive executor of the same schedule, over processes and threads, with all cuts of messages.
#include "onehop/plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <utility>

#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/tuning.h"
#include "onehop/verify.h"
#include "tests/support/naive_execute.h"
#include "tests/support/plan_check.h"
#include "tests/support/random_halo.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using testing::cut;
using testing::expect_plan_does;
using testing::Memory;
using testing::on_ranks;
using testing::on_threads;
using testing::random_memory;

TEST(Plan, RandomHalosOnThreads) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    const HaloSpec spec = testing::random_halo(random);
    const Schedule schedule = halo(spec);
    const Memory memory = random_memory(schedule, static_cast<unsigned>(trial));
    const PlanOptions options = trial % 3 == 0 ? PlanOptions{} : trial % 3 == 1 ? cut(2, 64, 16) : cut(1, 100, 30);
    SCOPED_TRACE(::testing::PrintToString(spec));
    on_threads(schedule.ranks, [&](const Group& group) {
      const bool whole = trial % 2 == 0;
      expect_plan_does(group, schedule, whole ? schedule : halo(spec, group.rank()), options, memory);
    });
  }
}

TEST(Plan, HalosOnProcesses) {
  std::mt19937 random(2);
  for (const int grid : {1, 2, 3, 4, 8}) {
    HaloSpec spec{.extents = {11, 9, 6}, .grid = {grid, 1, 1}, .widths = {}, .periodic = {}};
    if (grid == 4) spec.grid = {2, 2, 1};
    if (grid == 8) spec.grid = {2, 2, 2};
    spec.widths = {{1, 2}, {2, 1}, {1, 1}};
    spec.periodic = {true, false, true};
    spec.corners = grid % 2 == 0;
    spec.element_bytes = {8, 24, 1};
    const Schedule schedule = halo(spec);
    const Memory memory = random_memory(schedule, 7);
    on_ranks(grid, [&](const Group& group) { expect_plan_does(group, schedule, schedule, {}, memory); });
  }
}

// Long chunks of pieces of a few lines, with every kind of stores: pieces of 256 bytes fill lines and go straight into
// the slot, those of 240 bytes do not, and a list and a box may share a chunk.
TEST(Plan, LongChunksOfShortPieces) {
  Tuning before = tuning();
  for (const std::int64_t row : {30, 32}) {
    HaloSpec spec{.extents = {4, 80, row},
                  .grid = {2, 1, 1},
                  .widths = {{1, 1}, {1, 1}, {1, 1}},
                  .periodic = {true, false, false}};
    Schedule schedule = halo(spec);
    schedule.arrays.push_back({"list", 96, ElementType::bytes, {300}});
    std::vector<std::int64_t> every_third;
    for (std::int64_t i = 0; i < 90; ++i) every_third.push_back(3 * i);
    schedule.rounds[0].transfers.push_back({{0, 1, Slice::list(every_third)}, {1, 1, Slice::list(every_third)}});
    verify_or_throw(schedule);
    const Memory memory = random_memory(schedule, 11);
    for (const StoreKind kind : {StoreKind::plain, StoreKind::prefetch, StoreKind::nontemporal}) {
      SCOPED_TRACE(std::string(to_string(kind)) + ", rows of " + std::to_string(row));
      Tuning changed = before;
      changed.adaptive_stores = false;
      for (SizeRule& rule : changed.rules) rule.stores = kind;
      set_tuning(changed);
      on_ranks(2, [&](const Group& group) {
        for (const int chunk : {16 << 10, 20'000, 1 << 20}) {
          expect_plan_does(group, schedule, schedule, cut(2, 1 << 20, chunk), memory);
        }
      });
    }
  }
  set_tuning(std::move(before));
}

// The two faces of a dimension that a rank does not share lie in the same lines and are copied in one loop; those of
// different lengths are not.
TEST(Plan, FacesInsideARank) {
  for (const std::int64_t element_bytes : {1, 8, 16, 24, 40, 64}) {
    for (const int width : {1, 2}) {
      HaloSpec spec{.extents = {5, 70, 9},
                    .grid = {2, 1, 1},
                    .widths = {{1, 1}, {1, 0}, {1, width}},
                    .periodic = {true, true, true},
                    .element_bytes = {element_bytes}};
      const Schedule schedule = halo(spec);
      const Memory memory = random_memory(schedule, 12);
      SCOPED_TRACE(std::to_string(element_bytes) + " bytes, width " + std::to_string(width));
      on_threads(2, [&](const Group& group) { expect_plan_does(group, schedule, schedule, {}, memory); });
    }
  }
}

// A halo larger than its slots: ranks must unpack while they pack.
TEST(Plan, StagingStaysWithinItsBudget) {
  HaloSpec spec{
      .extents = {8, 200, 100}, .grid = {2, 1, 1}, .widths = {{2, 2}, {1, 1}, {1, 1}}, .periodic = {true, true, true}};
  const Schedule schedule = halo(spec);
  const Memory memory = random_memory(schedule, 3);
  on_ranks(2, [&](const Group& group) {
    expect_plan_does(group, schedule, schedule, cut(2, 4096, 1024), memory);
    std::vector<std::vector<std::byte>> mine = memory[static_cast<std::size_t>(group.rank())];
    std::vector<std::span<std::byte>> spans(mine.begin(), mine.end());
    const Plan plan(group, schedule, spans, cut(2, 4096, 1024));
    EXPECT_LE(plan.staging_bytes(), 2 * (4096 + 256));
    EXPECT_GT(count(schedule).ranks[0].bytes_sent, 10 * plan.staging_bytes());
  });
}

ArraySpec doubles(std::int64_t elements) { return {"x", 8, ElementType::float64, {elements}}; }

// Two ranks exchange slices in place, through slots that hold a small part of them.
TEST(Plan, ExchangeInPlace) {
  for (const bool same_order : {true, false}) {
    Schedule schedule{"", 2, {doubles(1000)}, {}, {}};
    const std::vector<std::int64_t> extents = {50, 5};
    const std::vector<std::int64_t> strides = {20, 2};
    const Slice even = Slice::box(0, extents, strides);
    const Slice odd = Slice::box(1, extents, strides);
    auto& transfers = schedule.rounds.emplace_back().transfers;
    transfers.push_back({{0, 0, even}, {1, 0, odd}});
    transfers.push_back({{0, 0, odd}, {1, 0, even}});
    transfers.push_back({{1, 0, odd}, {0, 0, even}});
    transfers.push_back({{1, 0, even}, {0, 0, odd}});
    if (!same_order) std::swap(transfers[2], transfers[3]);
    verify_or_throw(schedule);
    const Memory memory = random_memory(schedule, 9);
    testing::expect_on_threads(schedule, memory, {{}, cut(2, 256, 64), cut(1, 300, 100)});
  }
}

// Messages have other transfers too, the codecs of the two directions differ, and one direction combines.
TEST(Plan, ExchangeInPlaceBesideOtherTransfers) {
  Schedule schedule{"", 2, {{"x", 4, ElementType::float32, {1000}}, {"y", 8, ElementType::float64, {1000}}}, {}, {}};
  auto& transfers = schedule.rounds.emplace_back().transfers;
  const Slice first = Slice::range(0, 300);
  const Slice second = Slice::range(300, 300);
  const Slice third = Slice::range(600, 300);
  transfers.push_back({{0, 1, first}, {1, 1, second}});
  transfers.push_back({{0, 0, first}, {1, 0, second}, Combine::replace, Codec::q8});
  transfers.push_back({{1, 1, first}, {0, 1, second}});
  transfers.push_back({{1, 1, third}, {0, 1, third}, Combine::add, Codec::q4});
  transfers.push_back({{1, 0, second}, {0, 0, first}, Combine::max, Codec::raw});
  transfers.push_back({{0, 1, third}, {1, 1, third}, Combine::replace, Codec::fp16});
  verify_or_throw(schedule);
  const Memory memory = testing::random_numbers(schedule, 13);
  testing::expect_on_threads(schedule, memory, {{}, cut(2, 256, 64), cut(1, 300, 100)});
}

// Each sender has its own slots (another tuning, other options), so several fragments may have to be packed before one
// is unpacked.
TEST(Plan, ExchangeInPlaceWhereTheRanksCutDifferently) {
  Schedule schedule{"", 2, {doubles(4000)}, {}, {}};
  auto& transfers = schedule.rounds.emplace_back().transfers;
  transfers.push_back({{0, 0, Slice::range(0, 4000)}, {1, 0, Slice::range(0, 4000)}});
  transfers.push_back({{1, 0, Slice::range(0, 4000)}, {0, 0, Slice::range(0, 4000)}});
  verify_or_throw(schedule);
  const Memory memory = random_memory(schedule, 10);
  for (const int slots : {1, 2}) {
    on_threads(2, [&](const Group& group) {
      const PlanOptions options = group.rank() == 0 ? cut(slots, 8000, 1000) : cut(slots, 1000, 400);
      expect_plan_does(group, schedule, schedule, options, memory);
    });
  }
}

TEST(Plan, RefusesWhatCannotBeRight) {
  const Group group = Group::alone();
  const Schedule schedule = allgather(1, 10, 8);
  std::vector<std::byte> memory(80);
  std::vector<std::byte> little(79);
  const auto make = [&](const Schedule& given, std::vector<std::span<std::byte>> arrays) {
    Plan plan(group, given, arrays);
  };
  EXPECT_NO_THROW(make(schedule, {memory}));
  EXPECT_THROW(make(schedule, {}), BadInput);
  EXPECT_THROW(make(schedule, {little}), BadInput);
  EXPECT_THROW(make(allgather(2, 10, 8), {memory}), BadInput);
  Schedule endless = schedule;
  endless.arrays[0].elements = {std::int64_t{1} << 61};  // 2^64 bytes: nothing, counted in 64 bits
  EXPECT_THROW(make(endless, {memory}), BadInput);
  Schedule for_three = schedule;
  for_three.arrays[0].elements = {10, 10, 10};
  EXPECT_THROW(make(for_three, {memory}), BadInput);
  Schedule outside = schedule;
  outside.rounds.resize(1);
  outside.rounds[0].transfers.push_back({{0, 0, Slice::range(0, 5)}, {0, 0, Slice::range(8, 5)}});
  EXPECT_THROW(make(outside, {memory}), BadInput);
}

TEST(Plan, AnArrayThatTheRankDoesNotTouchMayBeAbsent) {
  Schedule schedule;
  schedule.arrays = {doubles(10), doubles(20)};
  schedule.rounds.emplace_back().transfers.push_back({{0, 0, Slice::range(0, 5)}, {0, 0, Slice::range(5, 5)}});
  std::vector<std::byte> memory(80);
  const std::vector<std::span<std::byte>> first_only = {memory, {}};
  const std::vector<std::span<std::byte>> second_only = {{}, memory};
  EXPECT_NO_THROW(Plan(Group::alone(), schedule, first_only).run());
  EXPECT_THROW(Plan(Group::alone(), schedule, second_only), BadInput);
}

TEST(Plan, StartAndFinishComeInPairs) {
  const Group group = Group::alone();
  std::vector<std::byte> memory(80);
  std::vector<std::span<std::byte>> arrays = {memory};
  Plan plan(group, allgather(1, 10, 8), arrays);
  EXPECT_THROW(plan.finish(), BadInput);
  plan.start();
  EXPECT_THROW(plan.start(), BadInput);
  plan.finish();
}

TEST(Plan, RanksWithDifferentSchedulesAreAMismatch) {
  on_threads(2, [](const Group& group) {
    std::vector<std::byte> memory(1000);
    const std::vector<std::span<std::byte>> arrays = {memory};
    const bool first = group.rank() == 0;
    testing::expect_says<Mismatch>([&] { Plan(group, allgather(2, first ? 10 : 11, 8), arrays); }, "80 bytes",
                                   "88 bytes");
    // The same size, but another meaning.
    testing::expect_says<Mismatch>([&] { Plan(group, allgather(2, first ? 8 : 16, first ? 8 : 4), arrays); },
                                   "the bytes mean different things");
  });
}

TEST(Plan, MockPacksAndUnpacksButMovesNothing) {
  HaloSpec spec{.extents = {8, 8}, .grid = {2, 1}, .widths = {{1, 1}, {1, 1}}, .periodic = {true, true}};
  const Schedule schedule = halo(spec);
  on_threads(2, [&](const Group& group) {
    std::vector<std::byte> memory(static_cast<std::size_t>(schedule.arrays[0].elements_on(group.rank()) * 8),
                                  std::byte{1});
    std::vector<std::span<std::byte>> arrays = {memory};
    PlanOptions options;
    options.transport = TransportKind::mock;
    Plan plan(group, schedule, arrays, options);
    for (int run = 0; run < 3; ++run) plan.run();
    EXPECT_EQ(plan.counters().bytes_sent, 3 * count(schedule).ranks[static_cast<std::size_t>(group.rank())].bytes_sent);
  });
}

}  // namespace
}  // namespace onehop
