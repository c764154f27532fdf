// ONEHOP_GUARD: programs that keep the promise of start() and finish() run as before, and programs that break it get an
// error that names the plan, the array and the element.
#include "src/plan/guard/guard.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "tests/support/plan_check.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using testing::expect_plan_moves;
using testing::Memory;
using testing::on_ranks;
using testing::random_memory;
using testing::SharedCopies;

// Runs on forked ranks, which see the variable.
void on_guarded_ranks(int ranks, const std::function<void(const Group&)>& rank_main) {
  setenv("ONEHOP_GUARD", "1", 1);
  on_ranks(ranks, rank_main);
  unsetenv("ONEHOP_GUARD");
}

// 64 x 64 x 64 numbers on each rank with ghosts of one site, divided along one dimension.
HaloSpec cube(int ranks, int dimension) {
  HaloSpec spec{.extents = {64, 64, 64}, .grid = {1, 1, 1}, .widths = {}, .periodic = {}};
  spec.grid[static_cast<std::size_t>(dimension)] = ranks;
  spec.widths = {{0, 0}, {0, 0}, {0, 0}};
  spec.widths[static_cast<std::size_t>(dimension)] = {1, 1};
  spec.periodic = {true, true, true};
  spec.element_bytes = {8};
  return spec;
}

struct Halo {
  Schedule schedule;
  SharedArray memory;
  std::span<double> values;
  std::vector<std::int64_t> shape;

  Halo(const Group& group, int dimension) : schedule(halo(cube(group.size(), dimension))) {
    const std::int64_t elements = schedule.arrays[0].elements_on(group.rank());
    memory = group.allocate(elements * 8);
    values = {reinterpret_cast<double*>(memory.bytes().data()), static_cast<std::size_t>(elements)};
    shape = {64, 64, 64};
    shape[static_cast<std::size_t>(dimension)] = 64 / group.size() + 2;
    std::iota(values.begin(), values.end(), 1e6 * group.rank());
  }
  [[nodiscard]] double& at(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return values[static_cast<std::size_t>((i * shape[1] + j) * shape[2] + k)];
  }
  [[nodiscard]] Plan plan(const Group& group) const {
    return {group, schedule, std::array{std::as_writable_bytes(values)}};
  }
};

std::string error_of(Plan& plan) {
  return testing::message_of<BadInput>([&] { plan.finish(); });
}

TEST(Guard, PlansMoveWhatTheyMoveWithoutIt) {
  for (const int dimension : {0, 1, 2}) {
    const Schedule schedule = halo(cube(2, dimension));
    const Memory memory = random_memory(schedule, 4);
    on_guarded_ranks(2, [&](const Group& group) {
      const SharedCopies mine(group, memory[static_cast<std::size_t>(group.rank())]);
      expect_plan_moves(group, schedule, schedule, {}, memory, mine.arrays);
      testing::expect_plan_does(group, schedule, schedule, testing::cut(2, 4096, 1024), memory);
    });
  }
}

// Nothing is reported of a program that computes on the interior, though its pages hold ghosts too.
TEST(Guard, ComputingOnTheInteriorIsNoFault) {
  for (const int dimension : {0, 2}) {
    on_guarded_ranks(2, [&](const Group& group) {
      const Halo halo(group, dimension);
      Plan plan = halo.plan(group);
      for (int run = 0; run < 2; ++run) {
        plan.start();
        double sum = 0;
        for (std::int64_t i = 2; i < 10; ++i) {
          for (std::int64_t k = 2; k < halo.shape[2] - 2; ++k) sum += halo.at(i, 20, k) += 1;
        }
        EXPECT_TRUE(std::isfinite(sum));
        EXPECT_EQ(error_of(plan), "");
      }
      EXPECT_EQ(plan.counters().runs, 2);
    });
  }
}

TEST(Guard, AReadGhostIsNamed) {
  for (const int dimension : {0, 2}) {
    on_guarded_ranks(2, [&](const Group& group) {
      const Halo halo(group, dimension);
      Plan plan = halo.plan(group);
      plan.start();
      volatile double ghost = 0;
      if (group.rank() == 0) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
        // A neighbour on the same page first, which is let through.
        ghost = dimension == 2 ? halo.at(30, 30, 5) : 0;
        EXPECT_TRUE(std::isfinite(ghost));
#endif
        ghost = dimension == 0 ? halo.at(0, 30, 30) : halo.at(30, 30, 0);
        EXPECT_TRUE(std::isnan(ghost));
      }
      const std::int64_t element = dimension == 0 ? 30 * 64 + 30 : (30 * 64 + 30) * halo.shape[2];
      EXPECT_EQ(error_of(plan), group.rank() == 1
                                    ? ""
                                    : "plan 'halo': the program read element " + std::to_string(element) +
                                          " of array 0 ('" + halo.schedule.arrays[0].name +
                                          "') between start() and finish(), and the exchange writes it meanwhile; "
                                          "access it before start() or after finish()");
      // The exchange itself is complete, and the plan can go on.
      EXPECT_FALSE(std::isnan(halo.at(0, 30, 30)) || std::isnan(halo.at(30, 30, 0)));
      plan.run();
    });
  }
}

TEST(Guard, AChangedSourceIsNamed) {
  on_guarded_ranks(2, [](const Group& group) {
    const Halo halo(group, 0);
    Plan plan = halo.plan(group);
    plan.start();
    if (group.rank() == 1) halo.at(1, 3, 7) = -1;
    EXPECT_EQ(error_of(plan), group.rank() == 0
                                  ? ""
                                  : "plan 'halo': the program wrote element " + std::to_string((64 + 3) * 64 + 7) +
                                        " of array 0 ('" + halo.schedule.arrays[0].name +
                                        "') between start() and finish(), and the exchange reads it meanwhile; write "
                                        "it before start() or after finish()");
  });
}

// In ordinary memory, where the ghosts do not fill a page.
TEST(Guard, AWrittenGhostIsNamedAlsoInAShortArray) {
  on_guarded_ranks(2, [](const Group& group) {
    Schedule schedule{"pair", 2, {{"out", 4, ElementType::float32, {8}}, {"in", 4, ElementType::float32, {8}}}, {}, {}};
    schedule.rounds.push_back({{{{0, 0, Slice::range(0, 8)}, {1, 1, Slice::range(0, 8)}},
                                {{1, 0, Slice::range(0, 8)}, {0, 1, Slice::range(0, 8)}}}});
    std::array<float, 8> out{};
    std::array<float, 8> in{};
    out.fill(3);
    Plan plan(group, schedule,
              std::array<std::span<std::byte>, 2>{std::as_writable_bytes(std::span(out)),
                                                  std::as_writable_bytes(std::span(in))});
    plan.start();
    EXPECT_TRUE(std::isnan(in[5]));  // poisoned
    if (group.rank() == 0) in[5] = 2;
    // Polling goes on guarding.
    while (!plan.test()) {
    }
    const std::string error = error_of(plan);
    EXPECT_EQ(error.starts_with("plan 'pair': the program wrote element 5 of array 1 ('in')"), group.rank() == 0)
        << error;
    EXPECT_EQ(in[5], 3);
  });
}

// Two plans at once, whose ghosts lie on the same pages.
TEST(Guard, PlansGuardTheSamePages) {
  on_guarded_ranks(2, [](const Group& group) {
    const Halo halo(group, 2);
    HaloSpec other_spec = cube(2, 2);
    Schedule far = onehop::halo(other_spec);
    far.name = "far";
    Plan one = halo.plan(group);
    Plan two(group, far, std::array{std::as_writable_bytes(halo.values)});
    one.start();
    EXPECT_EQ(error_of(one), "");
    two.start();
    volatile double ghost = halo.at(9, 9, 0);
    static_cast<void>(ghost);
    EXPECT_TRUE(error_of(two).starts_with("plan 'far': the program read element")) << group.rank();
    ghost = halo.at(9, 9, 0);  // no longer guarded
  });
}

TEST(Guard, WithoutTheVariableThereIsNone) {
  unsetenv("ONEHOP_GUARD");
  EXPECT_EQ(detail::Guard::make(halo(cube(1, 0)), {}, 0), nullptr);
}

}  // namespace
}  // namespace onehop
