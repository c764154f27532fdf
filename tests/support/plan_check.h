// Compares plans with the naive executor of the same schedule.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "onehop/count.h"
#include "onehop/plan.h"
#include "tests/support/naive_execute.h"
#include "tests/support/ranks.h"

namespace onehop::testing {

// Copies of a rank's arrays in memory that the ranks share.
struct SharedCopies {
  std::vector<SharedArray> owners;
  std::vector<std::span<std::byte>> arrays;

  SharedCopies(const Group& group, const std::vector<std::vector<std::byte>>& originals) {
    for (const auto& original : originals) {
      owners.push_back(group.allocate(static_cast<std::int64_t>(original.size())));
      arrays.push_back(owners.back().bytes().first(original.size()));
      if (!original.empty()) std::memcpy(arrays.back().data(), original.data(), original.size());
    }
  }
};

// Runs a plan of these arrays several times on every rank and compares each time with the naive executor; also the
// counters with `count`. Returns how many fragments the rank wrote straight into the arrays of others.
inline std::int64_t expect_plan_moves(const Group& group, const Schedule& schedule, const Schedule& given,
                                      const PlanOptions& options, Memory expected,
                                      std::span<const std::span<std::byte>> mine) {
  const auto rank = static_cast<std::size_t>(group.rank());
  Plan plan(group, given, mine, options);
  constexpr int runs = 4;
  for (int run = 0; run < runs; ++run) {
    naive_execute(schedule, expected);
    if (run == 2) {
      plan.run();
    } else {
      plan.start();
      if (run % 2 == 1) {
        while (!plan.test()) {
        }
      }
      plan.finish();
    }
    for (std::size_t a = 0; a < mine.size(); ++a) {
      for (std::size_t i = 0; i < mine[a].size(); ++i) {
        if (mine[a][i] == expected[rank][a][i]) continue;
        ADD_FAILURE() << "byte " << i << " of array " << a << " in run " << run << " on rank " << group.rank() << " of "
                      << schedule.to_json();
        return 0;
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
  std::int64_t puts = 0;
  for (const PlanChannel& channel : plan.channels()) puts += channel.direct_puts;
  return puts;
}

// The same with ordinary arrays.
inline void expect_plan_does(const Group& group, const Schedule& schedule, const Schedule& given,
                             const PlanOptions& options, const Memory& expected) {
  auto mine = expected[static_cast<std::size_t>(group.rank())];
  const std::vector<std::span<std::byte>> spans(mine.begin(), mine.end());
  EXPECT_EQ(expect_plan_moves(group, schedule, given, options, expected, spans), 0);
}

// The same on ranks that are threads, with each of these options.
inline void expect_on_threads(const Schedule& schedule, const Memory& memory, const std::vector<PlanOptions>& each) {
  for (const PlanOptions& options : each) {
    on_threads(schedule.ranks,
               [&](const Group& group) { expect_plan_does(group, schedule, schedule, options, memory); });
  }
}

inline PlanOptions cut(int slots, std::int64_t slot_bytes, std::int64_t chunk_bytes) {
  PlanOptions options{.slots = slots, .slot_bytes = slot_bytes, .chunk_bytes = chunk_bytes};
  return options;
}

}  // namespace onehop::testing
