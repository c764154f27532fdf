// Profiles: the recorded passes and exchanges add up to the work of the run.
#include "onehop/quantum/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "onehop/quantum/simulator.h"
#include "tests/support/ranks.h"

namespace onehop::quantum {
namespace {

// Layers of rotations and controlled phases: several passes at 17 bits.
Circuit layers(int qubits, int depth) {
  Circuit circuit;
  circuit.qubits = qubits;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> angle(0.1, 1.4);
  for (int layer = 0; layer < depth; ++layer) {
    for (int q = 0; q < qubits; ++q) {
      const double a = angle(random);
      Operation gate;
      gate.name = "ry";
      gate.targets = {q};
      gate.kind = OperationKind::matrix;
      gate.values = {std::cos(a), -std::sin(a), std::sin(a), std::cos(a)};
      circuit.operations.push_back(gate);
      Operation phase;
      phase.name = "cz";
      phase.kind = OperationKind::diagonal;
      phase.targets = {q, (q + 1) % qubits};
      phase.values = {1, 1, 1, -1};
      circuit.operations.push_back(phase);
    }
  }
  return circuit;
}

TEST(QuantumProfile, PassesAddUp) {
  const Circuit circuit = layers(18, 6);
  const auto group = Group::alone();
  SimulationOptions options;
  const SimulationResult plain = simulate(circuit, group, options);
  EXPECT_TRUE(plain.profile.empty());
  options.profile = true;
  options.observables = {PauliSum::parse("Z0")};
  const SimulationResult result = simulate(circuit, group, options);
  EXPECT_EQ(result.engine.passes, plain.engine.passes);
  EXPECT_GT(result.pass_seconds, 0);
  int passes = 0;
  std::int64_t gates = 0;
  double seconds = 0;
  double end = 0;
  for (const ProfileEntry& entry : result.profile) {
    EXPECT_GE(entry.begin, 0);
    EXPECT_LE(entry.begin + entry.seconds, result.seconds);
    seconds += entry.seconds;
    EXPECT_GE(entry.begin, end - 1e-6) << "entries follow each other";
    end = entry.begin + entry.seconds;
    if (entry.kind != ProfileEntry::Kind::pass) continue;
    ++passes;
    gates += entry.pass.pass.gates;
    EXPECT_EQ(entry.bytes, std::int64_t{32} << 18);
    EXPECT_EQ(entry.pass.pass.tile_bits.size(), 15U);
    EXPECT_GT(entry.pass.pass.multiply_adds, 0);
    EXPECT_GT(entry.pass.pass.sweeps, 0);
    const double parts = std::accumulate(entry.pass.parts.begin(), entry.pass.parts.end(), 0.0);
    EXPECT_GT(parts, 0);
    EXPECT_LE(parts, entry.seconds * 1.001);
  }
  EXPECT_EQ(passes, result.engine.passes);
  EXPECT_GT(passes, 1);
  EXPECT_EQ(gates, result.engine.operations);
  EXPECT_LE(seconds, result.seconds);
  const auto has = [&](ProfileEntry::Kind kind) {
    return std::any_of(result.profile.begin(), result.profile.end(), [&](const auto& e) { return e.kind == kind; });
  };
  EXPECT_TRUE(has(ProfileEntry::Kind::expectations));
  EXPECT_TRUE(has(ProfileEntry::Kind::planning));
}

// Placement::groups() predicts the passes that the engine makes, gate for gate.
TEST(QuantumProfile, GroupsAreThePasses) {
  const Circuit circuit = layers(17, 4);
  const Placement placement = place(circuit, 1);
  const auto groups = placement.groups();
  SimulationOptions options;
  options.profile = true;
  const SimulationResult result = simulate(circuit, Group::alone(), options);
  ASSERT_EQ(groups.size(), 1U);
  std::size_t next = 0;
  for (const ProfileEntry& entry : result.profile) {
    if (entry.kind != ProfileEntry::Kind::pass) continue;
    ASSERT_LT(next, groups[0].size());
    EXPECT_EQ(groups[0][next].tile_bits, entry.pass.pass.tile_bits);
    EXPECT_EQ(groups[0][next].gates, entry.pass.pass.gates);
    EXPECT_EQ(groups[0][next].multiply_adds, entry.pass.pass.multiply_adds);
    ++next;
  }
  EXPECT_EQ(next, groups[0].size());
  EXPECT_EQ(placement.passes(), static_cast<double>(next));
}

}  // namespace
}  // namespace onehop::quantum
