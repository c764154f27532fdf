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

TEST(QuantumGates, UIsTheFormula) {
  const std::vector<Complex> m = matrix_of(gate("u", {3}, {th, ph, la}));
  EXPECT_LT(std::abs(m[0] - std::cos(th / 2)), 1e-15);
  EXPECT_LT(std::abs(m[1] + std::polar(std::sin(th / 2), la)), 1e-15);
  EXPECT_LT(std::abs(m[2] - std::polar(std::sin(th / 2), ph)), 1e-15);
  EXPECT_LT(std::abs(m[3] - std::polar(std::cos(th / 2), ph + la)), 1e-15);
}

TEST(QuantumGates, ManyControls) {
  const Operation operation = gate("mcx", {5, 3, 8, 1});
  EXPECT_EQ(operation.controls, (std::vector<int>{5, 3, 8}));
  EXPECT_EQ(operation.targets, (std::vector<int>{1}));
  EXPECT_EQ(operation.control_values, 7U);
  EXPECT_EQ(gate("mcx", {2}).controls.size(), 0U);
}

TEST(QuantumGates, EveryNamedGateIsUnitary) {
  EXPECT_GT(gate_names().size(), 55U);
  for (const GateName& one : gate_names()) {
    Circuit circuit;
    circuit.qubits = 6;
    std::vector<int> qubits;
    for (int k = 0; k < (one.qubits < 0 ? 6 : one.qubits); ++k) qubits.push_back(k);
    circuit.operations.push_back(
        gate(one.name, qubits, std::vector<double>(static_cast<std::size_t>(one.parameters), th)));
    EXPECT_NO_THROW(circuit.validate()) << one.name;
    EXPECT_TRUE(circuit.operations[0].is_gate());
  }
}

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

TEST(QuantumGates, SayWhatIsWrong) {
  onehop::testing::expect_says<BadInput>([] { (void)gate("cxx", {0, 1}); }, "found 'cxx'");
  onehop::testing::expect_says<BadInput>([] { (void)gate("cx", {0}); }, "gate cx: expected 2 qubits, found 1");
  onehop::testing::expect_says<BadInput>([] { (void)gate("h", {0}, {1.0}); }, "gate h: expected 0 parameters, found 1");
  onehop::testing::expect_says<BadInput>([] { (void)gate("rz", {0}); }, "gate rz: expected 1 parameter, found 0");
  onehop::testing::expect_says<BadInput>([] { (void)gate("mcx", {}); }, "at least 1 qubit");
  Operation measure;
  measure.kind = OperationKind::measure;
  measure.name = "measure";
  onehop::testing::expect_says<BadInput>([&] { (void)matrix_of(measure); }, "found 'measure'");
  EXPECT_FALSE(is_diagonal(measure));
}

}  // namespace
}  // namespace onehop::quantum
