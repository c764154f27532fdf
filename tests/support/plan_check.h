// Compares plans with the naive executor of the same schedule.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/count.h"
#include "onehop/plan.h"
#include "tests/support/naive_execute.h"

namespace onehop::testing {

// Runs the plan several times on every rank and compares each time with the naive executor; also the counters with
// `count`.
inline void expect_plan_does(const Group& group, const Schedule& schedule, const Schedule& given,
                             const PlanOptions& options, Memory expected) {
  const auto rank = static_cast<std::size_t>(group.rank());
  auto mine = expected[rank];
  std::vector<std::span<std::byte>> spans(mine.begin(), mine.end());
  Plan plan(group, given, spans, options);
  constexpr int runs = 4;
  for (int run = 0; run < runs; ++run) {
    naive_execute(schedule, expected);
    plan.start();
    if (run % 2 == 1) {
      while (!plan.test()) {
      }
    }
    plan.finish();
    for (std::size_t a = 0; a < mine.size(); ++a) {
      for (std::size_t i = 0; i < mine[a].size(); ++i) {
        ASSERT_EQ(mine[a][i], expected[rank][a][i]) << "byte " << i << " of array " << a << " in run " << run
                                                    << " on rank " << group.rank() << " of " << schedule.to_json();
      }
    }
  }
  const RankCount counted = count(schedule).ranks[rank];
  const PlanCounters& moved = plan.counters();
  EXPECT_EQ(moved.runs, runs);
  EXPECT_EQ(moved.messages_sent, counted.messages_sent * runs);
  EXPECT_EQ(moved.messages_received, counted.messages_received * runs);
  EXPECT_EQ(moved.bytes_sent, counted.bytes_sent * runs);
  EXPECT_EQ(moved.bytes_received, counted.bytes_received * runs);
  EXPECT_EQ(moved.bytes_local, counted.bytes_local * runs);
}

inline PlanOptions cut(int slots, std::int64_t slot_bytes, std::int64_t chunk_bytes) {
  PlanOptions options;
  options.slots = slots;
  options.slot_bytes = slot_bytes;
  options.chunk_bytes = chunk_bytes;
  return options;
}

}  // namespace onehop::testing
