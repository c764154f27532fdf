// Shots, with threads as ranks. tests/quantum/test_simulator.py compares everything else with NumPy.
#include "onehop/quantum/simulator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/ranks.h"

namespace onehop::quantum {
namespace {

using testing::on_threads;

TEST(Simulator, ShotsOfACircuitWithMeasurementsInside) {
  Circuit c;
  c.qubits = 4;
  c.clbits = 3;
  const auto measure = [&](int qubit, int bit) {
    Operation o;
    o.kind = OperationKind::measure;
    o.name = "measure";
    o.targets = {qubit};
    o.clbits = {bit};
    c.operations.push_back(o);
  };
  c.operations.push_back(gate("h", {3}));
  measure(3, 0);
  c.operations.push_back(gate("x", {0}));
  c.operations.back().condition = {{0}, 1, false};
  c.operations.push_back(gate("h", {3}));
  measure(3, 1);
  measure(0, 2);
  SimulationOptions options;
  options.shots = 4000;
  options.seed = 11;
  std::vector<std::uint32_t> first;
  for (const int ranks : {1, 2, 8}) {
    on_threads(ranks, [&](const Group& group) {
      const SimulationResult result = simulate(c, group, options);
      EXPECT_EQ(result.runs, 2);  // the last measurement of qubit 3 is at the end
      ASSERT_EQ(result.outcomes.values.size(), 4U);
      for (std::size_t i = 0; i < 4; ++i) {
        const std::uint64_t value = result.outcomes.values[i][0];
        EXPECT_EQ(value & 1U, value >> 2 & 1U);
        EXPECT_NEAR(static_cast<double>(result.outcomes.counts[i]), 1000, 150);
      }
      if (ranks == 1) first = result.outcomes.of_shot;
      EXPECT_EQ(result.outcomes.of_shot, first);
    });
  }
}

}  // namespace
}  // namespace onehop::quantum
