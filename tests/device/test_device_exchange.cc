// States on devices of several ranks, by the processor as the device: against states in memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/observable.h"
#include "onehop/quantum/state.h"
#include "tests/device/standin/standin.h"
#include "tests/support/local_operations.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop::quantum {
namespace {

using onehop::testing::on_ranks;
using onehop::testing::on_threads;
using testing::Random;

const StateOptions on_processor{.device = "processor"};

// Random permutations, flips and gates, on a state in memory and one on a device.
void expect_equal_walks(const Group& group, int qubits, Precision precision, double tolerance,
                        const StateOptions& options = on_processor) {
  Random random(17);  // the same on every rank
  const auto start = testing::random_state(random, qubits);
  State expected(group, qubits, precision);
  State state(group, qubits, precision, options);
  expected.set_amplitudes(start, Norm::any);
  state.set_amplitudes(start, Norm::any);
  for (int round = 0; round < 8; ++round) {
    const std::vector<int> permutation = testing::shuffled(random, qubits);
    const int qubit = testing::number(random, 0, qubits - 1);
    const auto operation = testing::random_operation(random, state.local_bits(), 2);
    for (State* const one : {&expected, &state}) {
      one->permute(permutation);
      one->flip(qubit);
      one->apply({&operation, 1});
    }
    EXPECT_LT(testing::distance(expected.gather(), state.gather()), tolerance);
    EXPECT_EQ(state.flips(), expected.flips());
    EXPECT_EQ(state.counters().exchanges, expected.counters().exchanges);
  }
  const std::vector<PauliSum> sums = {PauliSum::parse("X0 + 0.5*Z1 Y0 - Z0"), PauliSum::parse("X0 X1 - 2*Y1")};
  const auto values = expectations(state, sums);
  const auto expected_values = expectations(expected, sums);
  for (std::size_t s = 0; s < sums.size(); ++s) EXPECT_LT(std::abs(values[s] - expected_values[s]), 10 * tolerance);
  const std::vector<int> some = {qubits - 1, 0};
  const auto found = state.probabilities(some);
  const auto wanted = expected.probabilities(some);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance);
  EXPECT_NEAR(state.norm_squared(), expected.norm_squared(), tolerance);
  State copy(group, qubits, precision, options);
  copy.copy_from(state);
  EXPECT_NEAR(std::abs(copy.inner_product(state)), state.norm_squared(), tolerance);
  state.collapse(1, 1, 0.25);
  expected.collapse(1, 1, 0.25);
  state.restore_order();
  expected.restore_order();
  EXPECT_LT(testing::distance(expected.gather(), state.gather()), 4 * tolerance);
  const std::vector<std::uint64_t> indices = {1, 2, 3};
  EXPECT_LT(testing::distance(expected.amplitudes(indices), state.amplitudes(indices)), 4 * tolerance);
  const std::vector<int> one = {0};
  EXPECT_LT(testing::distance(expected.reduced_density_matrix(one), state.reduced_density_matrix(one)), 4 * tolerance);
}

TEST(DeviceExchange, MovesAmplitudesBetweenDevicesInPlace) {
  for (const int ranks : {1, 2, 4, 8}) {
    SCOPED_TRACE(ranks);
    on_threads(ranks, [&](const Group& group) {
      expect_equal_walks(group, 7, Precision::double_precision, 1e-14);
      expect_equal_walks(group, 6, Precision::single_precision, 2e-6);
    });
  }
}

TEST(DeviceExchange, MovesAmplitudesBetweenProcesses) {
  on_ranks(4, [](const Group& group) { expect_equal_walks(group, 9, Precision::double_precision, 1e-14); });
}

// Cards of stand-in drivers, which reach each other, and which do not.
TEST(DeviceExchange, MovesAmplitudesBetweenCards) {
  using onehop::testing::StandIn;
  using onehop::testing::Variable;
  for (const device::Kind kind : {device::Kind::cuda, device::Kind::hip}) {
    const std::string name(device::name_of(kind));
    const std::string open = kind == device::Kind::cuda ? "cuIpcOpenMemHandle_v2" : "hipIpcOpenMemHandle";
    SCOPED_TRACE(name);
    on_ranks(4, [&](const Group& group) {
      const StandIn standin(kind);
      expect_equal_walks(group, 8, Precision::double_precision, 1e-14, {.device = name});
      const int opened = standin.calls(open.c_str());
      EXPECT_GE(opened, 3);
      const Variable failing("STANDIN_FAIL", open + ":0");
      expect_equal_walks(group, 8, Precision::double_precision, 1e-14, {.device = name});
      EXPECT_GT(standin.calls(open.c_str()), opened);
    });
  }
}

TEST(DeviceExchange, StatesThatDoNotFitAreRefusedWithTheNumberOfDevices) {
  const std::string said = onehop::testing::thrown<Error>(
      [] { return State(Group::alone(), 50, Precision::double_precision, on_processor); });
  EXPECT_SAYS(said, "a state of 50 qubits in double precision needs 16 PiB");
  EXPECT_SAYS(said, "share processor with");
  EXPECT_SAYS(said, "such devices, each with a rank of its own");
}

TEST(DeviceExchange, WhatADeviceDoesNotDoIsRefused) {
  const auto refusal = [](Precision precision, const StateOptions& options) {
    return onehop::testing::thrown<BadInput>([&] { return State(Group::alone(), 6, precision, options); });
  };
  EXPECT_EQ(refusal(Precision::q8, on_processor),
            "expected a state in memory in precision double or single for the device 'processor', found precision q8");
  EXPECT_SAYS(refusal(Precision::double_precision, {.folder = ".", .device = "processor"}), "found one in a folder");
  EXPECT_SAYS(refusal(Precision::double_precision, {.device = "gpu"}), "found 'gpu'");
  const State state(Group::alone(), 6, Precision::double_precision, on_processor);
  EXPECT_EQ(onehop::testing::thrown<BadInput>([&] { return state.local<double>(); }),
            "expected a state in memory, found one on the device 'processor'");
}

}  // namespace
}  // namespace onehop::quantum
