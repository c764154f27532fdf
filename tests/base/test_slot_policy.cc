// The values are written out here: a change of the policy must change this test too.
#include "src/base/slot_policy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "onehop/tuning.h"
#include "src/channel/channel_specs.h"
#include "src/plan/program/plan_part.h"

namespace onehop::base {
namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

struct ChannelCase {
  std::int64_t bytes;
  int slots;
  std::int64_t slot_bytes;
  std::int64_t chunk_bytes;
};

const std::vector<ChannelCase> channel_cases = {
    {0, 4, 8, 4096},
    {1, 4, 8, 4096},
    {8, 4, 8, 4096},
    {9, 4, 9, 4096},
    {1024, 4, 1024, 4096},
    {1025, 2, 1025, 4096},
    {4096, 2, 4096, 4096},
    {4097, 2, 4097, 16384},
    {mib, 2, mib, 16384},
    {64 * mib, 2, 64 * mib, 16384},
    {64 * mib + 1, 2, 64 * mib, 16384},
    {1024 * mib, 2, 64 * mib, 16384},
};

TEST(SlotPolicy, RequestsHoldExceptThatAFlagCountsTheChunks) {
  const ChannelLimits limits{1024, 4, 4096, 32767};
  EXPECT_EQ(channel_slots(100, {3, 50, 10}, limits), (SlotSizes{3, 50, 10}));
  EXPECT_EQ(channel_slots(100, {1, 0, 0}, limits), (SlotSizes{1, 100, 4096}));
  EXPECT_EQ(channel_slots(mib, {0, 4096, 64}, limits), (SlotSizes{2, 4096, 64}));
  EXPECT_EQ(channel_slots(mib, {0, 0, 1}, limits), (SlotSizes{2, mib, 33}));
  EXPECT_EQ(channel_slots(1024 * mib, {0, 1024 * mib, 0}, limits), (SlotSizes{2, 1024 * mib, 32770}));
}

struct PlanCase {
  PlanMessage message;
  SlotSizes requested;
  SlotSizes expected;
};

const std::vector<PlanCase> plan_cases = {
    {{0}, {}, {0, 8, 0}},
    {{100}, {}, {0, 100, 0}},
    {{256 * kib}, {}, {0, 256 * kib, 0}},
    {{256 * kib + 1}, {}, {0, 256 * kib, 0}},
    {{64 * mib}, {}, {0, 256 * kib, 0}},
    // An element that is longer than the limit must fit in a slot.
    {{mib, 300 * kib}, {}, {0, 300 * kib, 0}},
    {{mib, 300 * kib}, {0, 4 * kib, 0}, {0, 300 * kib, 0}},
    {{mib}, {3, 4 * kib, 512}, {3, 4 * kib, 512}},
    {{.bytes = mib, .side_by_side = true}, {}, {0, 256 * kib, 64 * kib}},
    {{.bytes = mib, .side_by_side = true}, {0, 0, 512}, {0, 256 * kib, 512}},
    {{.bytes = mib, .permutes_between_machines = true}, {}, {0, mib, 0}},
    {{.bytes = 4 * mib, .permutes_between_machines = true}, {}, {0, 4 * mib, 0}},
    {{.bytes = 8 * mib, .permutes_between_machines = true}, {}, {0, 4 * mib, 0}},
    {{.bytes = 8 * mib + 1, .permutes_between_machines = true}, {}, {8, mib, 0}},
    {{.bytes = 64 * mib, .permutes_between_machines = true}, {3, 0, 0}, {3, 4 * mib, 0}},
    {{.bytes = 64 * mib, .permutes_between_machines = true}, {0, 64 * kib, 0}, {0, 64 * kib, 0}},
    {{.bytes = 64 * mib, .permutes_between_machines = true, .side_by_side = true}, {}, {8, mib, 64 * kib}},
};

TEST(SlotPolicy, TheLongPathsOfACollectiveTakeSixMiBAtMost) {
  const std::vector<std::pair<int, std::int64_t>> expected = {
      {1, 256 * kib}, {2, 256 * kib}, {4, 256 * kib}, {5, 128 * kib}, {7, 128 * kib}, {8, 64 * kib},
      {13, 64 * kib}, {14, 32 * kib}, {32, 16 * kib}, {128, 4 * kib}, {1024, 512},    {100'000, 512},
  };
  for (const auto& [ranks, bytes] : expected) {
    EXPECT_EQ(collective_slots(ranks, {}), (SlotSizes{4, bytes, bytes})) << ranks;
  }
  EXPECT_EQ(collective_slots(8, {2, 0, 0}), (SlotSizes{2, 128 * kib, 128 * kib}));
  EXPECT_EQ(collective_slots(8, {64, 0, 0}), (SlotSizes{64, 4 * kib, 4 * kib}));
  EXPECT_EQ(collective_slots(8, {3, 1000, 0}), (SlotSizes{3, 1000, 1000}));
}

// Channels and plans take their sizes from the policy.
TEST(SlotPolicy, ChannelsAndPlansFollowIt) {
  const Tuning before = tuning();
  Tuning tuned = built_in_tuning();
  tuned.rules = {{4096, 4096, StoreKind::plain}, {INT64_MAX, 16384, StoreKind::plain}};
  tuned.slot_bytes = 256 * kib;
  set_tuning(tuned);
  for (const ChannelCase& expected : channel_cases) {
    const onehop::detail::Wanted end = onehop::detail::wanted({.peer = 1, .bytes = expected.bytes}, 0);
    EXPECT_EQ((SlotSizes{end.slots, end.slot_bytes, end.chunk_bytes}),
              (SlotSizes{expected.slots, expected.slot_bytes, expected.chunk_bytes}))
        << expected.bytes;
  }
  for (std::size_t i = 0; i < plan_cases.size(); ++i) {
    const auto& [message, requested, expected] = plan_cases[i];
    onehop::detail::Lane lane;
    lane.bytes = message.bytes;
    lane.unit_bytes = message.unit_bytes;
    lane.permutes = message.permutes_between_machines;
    lane.side_by_side = message.side_by_side;
    PlanOptions options{
        .slots = requested.slots, .slot_bytes = requested.slot_bytes, .chunk_bytes = requested.chunk_bytes};
    const auto spec_on = [&](bool between_machines) {
      const ChannelSpec spec =
          onehop::detail::spec_for(ChannelSpec::Direction::send, 1, lane, options, between_machines);
      return SlotSizes{spec.slots, spec.slot_bytes, spec.chunk_bytes};
    };
    EXPECT_EQ(spec_on(true), expected) << i;
    // Within a machine a permutation is like any other message.
    PlanMessage near = message;
    near.permutes_between_machines = false;
    EXPECT_EQ(spec_on(false), plan_slots(near, requested, 256 * kib)) << i;
  }
  set_tuning(before);
}

}  // namespace
}  // namespace onehop::base
