// Named gates: what they are made of and refuse. tests/quantum/test_gates.py compares all matrices with Qiskit's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "onehop/error.h"
#include "onehop/quantum/circuit.h"
#include "tests/support/thrown.h"

namespace onehop::quantum {
namespace {

constexpr double th = 0.7;
constexpr double ph = -1.3;
constexpr double la = 2.1;

TEST(QuantumGates, KindsThatMoveNothing) {
  for (const char* name : {"z", "s", "tdg", "id", "cz", "ccz", "cs"}) {
    const std::vector<int> qubits = {0, 1, 2};
    const auto* const known =
        &*std::find_if(gate_names().begin(), gate_names().end(), [&](const GateName& one) { return one.name == name; });
    EXPECT_TRUE(is_diagonal(gate(name, {qubits.begin(), qubits.begin() + known->qubits}))) << name;
  }
  for (const char* name : {"p", "rz", "u1"}) EXPECT_TRUE(is_diagonal(gate(name, {0}, {th}))) << name;
  EXPECT_TRUE(is_diagonal(gate("rzz", {0, 1}, {th})));
  EXPECT_TRUE(is_diagonal(gate("gphase", {}, {th})));
  EXPECT_TRUE(is_diagonal(gate("u3", {0}, {0, ph, la})));
  for (const char* name : {"x", "y", "h", "sx"}) EXPECT_FALSE(is_diagonal(gate(name, {0}))) << name;
  EXPECT_FALSE(is_diagonal(gate("swap", {0, 1})));
  EXPECT_FALSE(is_diagonal(gate("rxx", {0, 1}, {th})));
  EXPECT_EQ(gate("swap", {0, 1}).kind, OperationKind::swap);
  EXPECT_EQ(gate("cswap", {0, 1, 2}).kind, OperationKind::swap);
  Operation zz;
  zz.kind = OperationKind::pauli_rotation;
  zz.paulis = "ZZ";
  EXPECT_TRUE(is_diagonal(zz));
}

}  // namespace
}  // namespace onehop::quantum
