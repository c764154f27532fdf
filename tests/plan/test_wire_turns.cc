// Transfers whose elements share cache lines take turns on the wire: which do, and that plans still move what the naive
// executor moves.
#include "src/plan/program/wire_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "onehop/patterns.h"
#include "onehop/verify.h"
#include "src/plan/program/plan_part.h"
#include "src/plan/program/wire_layout.h"
#include "tests/support/plan_check.h"
#include "tests/support/ranks.h"

namespace onehop {
namespace {

using testing::cut;
using testing::expect_plan_does;
using testing::Memory;
using testing::on_ranks;
using testing::on_threads;
using testing::random_memory;

HaloSpec last_dimension(std::vector<std::int64_t> extents, int ranks, std::int64_t element_bytes, std::int64_t width) {
  HaloSpec spec;
  spec.grid.assign(extents.size(), 1);
  spec.grid.back() = ranks;
  spec.widths.assign(extents.size(), {1, 1});
  spec.widths.back() = {width, width};
  spec.periodic.assign(extents.size(), false);
  spec.periodic.back() = true;
  spec.extents = std::move(extents);
  spec.element_bytes = {element_bytes};
  return spec;
}

detail::Turns turns(const Schedule& schedule) {
  const detail::RoundPart own = detail::sort_transfers(schedule, 0)[0];
  const detail::RoundPart other = detail::sort_transfers(schedule, 1)[0];
  const detail::Turns to = detail::turns_of(own.to.at(1), 1, schedule, own);
  EXPECT_EQ(to, detail::turns_of(other.from.at(0), 0, schedule, other)) << "the ranks disagree";
  EXPECT_EQ(detail::turns_of(own.from.at(1), 1, schedule, own), detail::turns_of(other.to.at(0), 0, schedule, other))
      << "the ranks disagree";
  return to;
}

TEST(WireTurns, OfWholeRowsInHalfOfTheFirstCache) {
  EXPECT_EQ(turns(halo(last_dimension({128, 64, 128}, 2, 8, 1))), (detail::Turns{256, 256}));
  EXPECT_EQ(turns(halo(last_dimension({90, 30, 20}, 2, 16, 1))), (detail::Turns{180, 180}));
  EXPECT_EQ(turns(halo(last_dimension({40, 1009, 20}, 2, 8, 1))), (detail::Turns{256, 256})) << "a prime";
}

TEST(WireTurns, OnlyWhereLinesAreShared) {
  const detail::Turns none{0, 0};
  EXPECT_EQ(turns(halo(last_dimension({16, 16, 20}, 2, 8, 1))), none) << "all at once";
  EXPECT_EQ(turns(halo(last_dimension({128, 64, 8}, 2, 8, 1))), none) << "rows of less than a line";
  HaloSpec planes = last_dimension({128, 64, 64}, 1, 8, 1);
  planes.grid = {2, 1, 1};
  planes.periodic = {true, false, false};
  EXPECT_EQ(turns(halo(planes)), none) << "pieces of whole rows";
  HaloSpec encoded = last_dimension({128, 64, 128}, 2, 8, 1);
  encoded.types = {ElementType::float64};
  encoded.codec = Codec::q8;
  EXPECT_EQ(turns(halo(encoded)), none) << "encoded";
}

// Elements that change places must pass in the same order in both directions.
TEST(WireTurns, NoneInAnExchangeInPlace) {
  Schedule schedule{"", 2, {{"x", 8, ElementType::bytes, {20'000}}}, {}, {}};
  const std::vector<std::int64_t> extents = {1000};
  const std::vector<std::int64_t> strides = {20};
  const Slice even = Slice::box(0, extents, strides);
  const Slice odd = Slice::box(1, extents, strides);
  auto& transfers = schedule.rounds.emplace_back().transfers;
  transfers.push_back({{0, 0, even}, {1, 0, odd}});
  transfers.push_back({{0, 0, odd}, {1, 0, even}});
  transfers.push_back({{1, 0, odd}, {0, 0, even}});
  transfers.push_back({{1, 0, even}, {0, 0, odd}});
  verify_or_throw(schedule);
  EXPECT_EQ(turns(schedule), (detail::Turns{0, 0}));
  const Memory memory = random_memory(schedule, 3);
  on_threads(2, [&](const Group& group) { expect_plan_does(group, schedule, schedule, cut(2, 2048, 512), memory); });
}

TEST(WireTurns, LayoutAlternates) {
  const detail::WireSize size{.elements = 10, .unit_bytes = 8, .bytes = 80, .turn = 4};
  const auto fragments = detail::lay_out(std::array{size, size}, 1 << 20, 1 << 20);
  ASSERT_EQ(fragments.size(), 1U);
  ASSERT_EQ(fragments[0].chunks.size(), 1U);
  std::vector<std::array<std::int64_t, 3>> found;
  for (const auto& piece : fragments[0].chunks[0].pieces) found.push_back({piece.transfer, piece.first, piece.last});
  EXPECT_EQ(found, (std::vector<std::array<std::int64_t, 3>>{
                       {0, 0, 4}, {1, 0, 4}, {0, 4, 8}, {1, 4, 8}, {0, 8, 10}, {1, 8, 10}}));
  EXPECT_EQ(fragments[0].bytes, 160);
}

TEST(WireTurns, PlansMoveWhatTheNaiveExecutorMoves) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 12; ++trial) {
    const auto number = [&](int low, int high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    const HaloSpec spec =
        last_dimension({number(8, 24), number(20, 50), 2 * number(8, 20)}, 2, trial % 2 == 0 ? 8 : 16, number(1, 2));
    const Schedule schedule = halo(spec);
    const auto found = turns(schedule);
    // Two elements of 8 bytes, or one of 16, beside each other on each side; more reach into other lines.
    const bool expected = spec.extents[0] * spec.extents[1] * spec.widths.back().first > 256;
    EXPECT_EQ(std::ranges::all_of(found, [](std::int64_t turn) { return turn != 0; }), expected)
        << ::testing::PrintToString(spec);
    const Memory memory = random_memory(schedule, static_cast<unsigned>(trial));
    const PlanOptions options = trial % 3 == 0 ? PlanOptions{} : trial % 3 == 1 ? cut(2, 6000, 1500) : cut(1, 800, 800);
    on_threads(
        2, [&](const Group& group) { expect_plan_does(group, schedule, halo(spec, group.rank()), options, memory); });
    on_ranks(2, [&](const Group& group) {
      const testing::SharedCopies mine(group, memory[static_cast<std::size_t>(group.rank())]);
      testing::expect_plan_moves(group, schedule, schedule, options, memory, mine.arrays);
    });
  }
}

}  // namespace
}  // namespace onehop
