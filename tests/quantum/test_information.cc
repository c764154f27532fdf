// Fidelities, entropies, marginal probabilities and reduced density matrices against formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/observable.h"
#include "onehop/quantum/simulator.h"
#include "onehop/quantum/state.h"
#include "tests/support/ranks.h"

namespace onehop::quantum {
namespace {

using testing::on_threads;

double binary_entropy(double p) { return p <= 0 || p >= 1 ? 0 : -p * std::log2(p) - (1 - p) * std::log2(1 - p); }

// cos(angle/2) |0...0> + sin(angle/2) |1...1>
Circuit cat(int qubits, double angle) {
  Circuit circuit;
  circuit.qubits = qubits;
  circuit.operations.push_back(gate("ry", {0}, {angle}));
  for (int q = 1; q < qubits; ++q) circuit.operations.push_back(gate("cx", {0, q}));
  return circuit;
}

TEST(State, HasTheEntropyAndFidelityOfCatStates) {
  for (const int ranks : {1, 2, 4}) {
    on_threads(ranks, [](const Group& group) {
      State one(group, 6);
      State other(group, 6);
      static_cast<void>(run(one, cat(6, 0.8), 0));
      static_cast<void>(run(other, cat(6, 0.3), 0));
      const double p = std::pow(std::sin(0.4), 2);
      for (const auto& side : {std::vector<int>{3}, {0, 5}, {4, 1, 2}, {0, 1, 2, 3, 4}}) {
        EXPECT_NEAR(one.entropy(side), binary_entropy(p), 1e-10);
      }
      EXPECT_EQ(one.entropy(std::vector<int>{}), 0);
      EXPECT_NEAR(one.fidelity(other), std::pow(std::cos(0.25), 2), 1e-12);
      EXPECT_NEAR(one.fidelity(one), 1, 1e-12);
      const auto marginal = one.probabilities(std::vector<int>{2, 4});
      EXPECT_NEAR(marginal[0], 1 - p, 1e-12);
      EXPECT_NEAR(marginal[3], p, 1e-12);
      const auto matrix = one.reduced_density_matrix(std::vector<int>{2, 4});
      EXPECT_NEAR(matrix[15].real(), p, 1e-12);
      EXPECT_NEAR(std::abs(matrix[3]), 0, 1e-12);
      const std::vector<PauliSum> z{PauliSum::parse("Z1")};
      EXPECT_NEAR(variances(one, z).front(), 1 - std::pow(1 - 2 * p, 2), 1e-12);
      EXPECT_THROW(static_cast<void>(one.entropy(std::vector<int>{1, 1})), BadInput);
    });
  }
}

// Four pairs in states with different entropies: that of a set of halves is the sum.
TEST(State, HasTheEntropyOfPairs) {
  Circuit circuit;
  circuit.qubits = 8;
  double sum = 0;
  for (int pair = 0; pair < 4; ++pair) {
    const double angle = 0.4 + 0.35 * pair;
    circuit.operations.push_back(gate("ry", {pair}, {angle}));
    circuit.operations.push_back(gate("cx", {pair, pair + 4}));
    sum += binary_entropy(std::pow(std::sin(angle / 2), 2));
  }
  for (int q = 0; q < 3; ++q) {  // does not change the entropy between the halves
    circuit.operations.push_back(gate("rxx", {q, q + 1}, {0.7}));
    circuit.operations.push_back(gate("ryy", {q + 4, q + 5}, {0.3 + q}));
  }
  on_threads(2, [&](const Group& group) {
    State state(group, 8);
    static_cast<void>(run(state, circuit, 0));
    EXPECT_NEAR(state.entropy(std::vector<int>{0, 1, 2, 3}), sum, 1e-10);
    EXPECT_NEAR(state.entropy(std::vector<int>{7, 5, 6, 4}), sum, 1e-10);
  });
}

}  // namespace
}  // namespace onehop::quantum
