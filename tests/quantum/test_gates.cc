// Named gates against their definitions in OpenQASM's qelib1.inc, multiplied out here; the Python tests compare with
// Qiskit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "onehop/error.h"
#include "onehop/quantum/circuit.h"

namespace onehop::quantum {
namespace {

constexpr double pi = std::numbers::pi;
using Matrix = std::vector<Complex>;

std::size_t size_of(int qubits) { return std::size_t{1} << qubits; }

// The full matrix of an operation on this many qubits, from its definition.
Matrix on_all(const Operation& operation, int qubits) {
  const std::size_t size = size_of(qubits);
  const Matrix small = matrix_of(operation);
  const std::size_t small_size = size_of(static_cast<int>(operation.targets.size()));
  Matrix full(size * size, 0);
  for (std::size_t column = 0; column < size; ++column) {
    bool applies = true;
    for (std::size_t k = 0; k < operation.controls.size(); ++k) {
      applies &= ((column >> operation.controls[k]) & 1U) == ((operation.control_values >> k) & 1U);
    }
    if (!applies) {
      full[column * size + column] = 1;
      continue;
    }
    std::size_t from = 0;
    std::size_t rest = column;
    for (std::size_t k = 0; k < operation.targets.size(); ++k) {
      from |= ((column >> operation.targets[k]) & 1U) << k;
      rest &= ~size_of(operation.targets[k]);
    }
    for (std::size_t to = 0; to < small_size; ++to) {
      std::size_t row = rest;
      for (std::size_t k = 0; k < operation.targets.size(); ++k) row |= ((to >> k) & 1U) << operation.targets[k];
      full[row * size + column] += small[to * small_size + from];
    }
  }
  return full;
}

Matrix product(const Matrix& a, const Matrix& b, std::size_t size) {
  Matrix c(size * size, 0);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < size; ++k) {
      for (std::size_t j = 0; j < size; ++j) c[i * size + j] += a[i * size + k] * b[k * size + j];
    }
  }
  return c;
}

// The largest difference, up to the best global phase.
double difference(const Matrix& a, const Matrix& b) {
  Complex overlap = 0;
  for (std::size_t k = 0; k < a.size(); ++k) overlap += std::conj(a[k]) * b[k];
  const Complex phase = overlap / std::abs(overlap);
  double worst = 0;
  for (std::size_t k = 0; k < a.size(); ++k) worst = std::max(worst, std::abs(a[k] * phase - b[k]));
  return worst;
}

struct Step {
  const char* name;
  std::vector<int> qubits;
  std::vector<double> parameters;
};

struct Case {
  const char* name;
  int qubits;
  std::vector<double> parameters;
  std::vector<Step> body;  // as in qelib1.inc
};

constexpr double th = 0.7;
constexpr double ph = -1.3;
constexpr double la = 2.1;
constexpr double ga = 0.4;

template <typename... Qubits>
Step step(const char* name, Qubits... qubits) {
  return {name, {qubits...}, {}};
}

template <typename... Steps>
Case named(const char* name, int qubits, std::vector<double> parameters, Steps... body) {
  return {name, qubits, std::move(parameters), {body...}};
}

std::vector<Case> cases() {
  return {
      named("u0", 1, {1}, Step{"u", {0}, {0, 0, 0}}),
      named("u1", 1, {la}, Step{"u", {0}, {0, 0, la}}),
      named("u2", 1, {ph, la}, Step{"u", {0}, {pi / 2, ph, la}}),
      named("u3", 1, {th, ph, la}, Step{"u", {0}, {th, ph, la}}),
      named("x", 1, {}, Step{"u", {0}, {pi, 0, pi}}),
      named("y", 1, {}, Step{"u", {0}, {pi, pi / 2, pi / 2}}),
      named("z", 1, {}, Step{"u", {0}, {0, 0, pi}}),
      named("h", 1, {}, Step{"u", {0}, {pi / 2, 0, pi}}),
      named("s", 1, {}, Step{"u", {0}, {0, 0, pi / 2}}),
      named("sdg", 1, {}, Step{"u", {0}, {0, 0, -pi / 2}}),
      named("t", 1, {}, Step{"u", {0}, {0, 0, pi / 4}}),
      named("tdg", 1, {}, Step{"u", {0}, {0, 0, -pi / 4}}),
      named("rx", 1, {th}, Step{"u", {0}, {th, -pi / 2, pi / 2}}),
      named("ry", 1, {th}, Step{"u", {0}, {th, 0, 0}}),
      named("rz", 1, {ph}, Step{"u", {0}, {0, 0, ph}}),
      named("sx", 1, {}, step("sdg", 0), step("h", 0), step("sdg", 0)),
      named("sxdg", 1, {}, step("s", 0), step("h", 0), step("s", 0)),
      named("cz", 2, {}, step("h", 1), step("cx", 0, 1), step("h", 1)),
      named("cy", 2, {}, step("sdg", 1), step("cx", 0, 1), step("s", 1)),
      named("swap", 2, {}, step("cx", 0, 1), step("cx", 1, 0), step("cx", 0, 1)),
      named("dcx", 2, {}, step("cx", 0, 1), step("cx", 1, 0)),
      named("ch", 2, {}, step("s", 1), step("h", 1), step("t", 1), step("cx", 0, 1), step("tdg", 1), step("h", 1),
            step("sdg", 1)),
      named("cu1", 2, {la}, Step{"u1", {0}, {la / 2}}, step("cx", 0, 1), Step{"u1", {1}, {-la / 2}}, step("cx", 0, 1),
            Step{"u1", {1}, {la / 2}}),
      named("crz", 2, {la}, Step{"rz", {1}, {la / 2}}, step("cx", 0, 1), Step{"rz", {1}, {-la / 2}}, step("cx", 0, 1)),
      named("cry", 2, {la}, Step{"ry", {1}, {la / 2}}, step("cx", 0, 1), Step{"ry", {1}, {-la / 2}}, step("cx", 0, 1)),
      named("crx", 2, {la}, Step{"u1", {1}, {pi / 2}}, step("cx", 0, 1), Step{"u3", {1}, {-la / 2, 0, 0}},
            step("cx", 0, 1), Step{"u3", {1}, {la / 2, -pi / 2, 0}}),
      named("cu3", 2, {th, ph, la}, Step{"u1", {0}, {(la + ph) / 2}}, Step{"u1", {1}, {(la - ph) / 2}},
            step("cx", 0, 1), Step{"u3", {1}, {-th / 2, 0, -(ph + la) / 2}}, step("cx", 0, 1),
            Step{"u3", {1}, {th / 2, ph, 0}}),
      named("cu", 2, {th, ph, la, ga}, Step{"p", {0}, {ga}}, Step{"cu3", {0, 1}, {th, ph, la}}),
      named("csx", 2, {}, step("h", 1), Step{"cu1", {0, 1}, {pi / 2}}, step("h", 1)),
      named("rzz", 2, {th}, step("cx", 0, 1), Step{"u1", {1}, {th}}, step("cx", 0, 1)),
      named("rxx", 2, {th}, step("h", 0), step("h", 1), Step{"rzz", {0, 1}, {th}}, step("h", 1), step("h", 0)),
      named("ryy", 2, {th}, step("sxdg", 0), step("sxdg", 1), Step{"rzz", {0, 1}, {th}}, step("sx", 0), step("sx", 1)),
      named("rzx", 2, {th}, step("h", 1), Step{"rzz", {0, 1}, {th}}, step("h", 1)),
      named("ecr", 2, {}, Step{"rzx", {0, 1}, {pi / 4}}, step("x", 0), Step{"rzx", {0, 1}, {-pi / 4}}),
      named("iswap", 2, {}, step("s", 0), step("s", 1), step("h", 0), step("cx", 0, 1), step("cx", 1, 0), step("h", 1)),
      named("ccx", 3, {}, step("h", 2), step("cx", 1, 2), step("tdg", 2), step("cx", 0, 2), step("t", 2),
            step("cx", 1, 2), step("tdg", 2), step("cx", 0, 2), step("t", 1), step("t", 2), step("h", 2),
            step("cx", 0, 1), step("t", 0), step("tdg", 1), step("cx", 0, 1)),
      named("cswap", 3, {}, step("cx", 2, 1), step("ccx", 0, 1, 2), step("cx", 2, 1)),
      named("rccx", 3, {}, Step{"u2", {2}, {0, pi}}, step("t", 2), step("cx", 1, 2), step("tdg", 2), step("cx", 0, 2),
            step("t", 2), step("cx", 1, 2), step("tdg", 2), Step{"u2", {2}, {0, pi}}),
      named("rc3x", 4, {}, step("h", 3), step("t", 3), step("cx", 2, 3), step("tdg", 3), step("h", 3), step("cx", 0, 3),
            step("t", 3), step("cx", 1, 3), step("tdg", 3), step("cx", 0, 3), step("t", 3), step("cx", 1, 3),
            step("tdg", 3), step("h", 3), step("t", 3), step("cx", 2, 3), step("tdg", 3), step("h", 3)),
      named("c3x", 4, {}, step("h", 3), Step{"mcphase", {0, 1, 2, 3}, {pi}}, step("h", 3)),
      named("c3sqrtx", 4, {}, step("h", 3), Step{"mcphase", {0, 1, 2, 3}, {pi / 2}}, step("h", 3)),
      named("c4x", 5, {}, step("csx", 3, 4), step("c3x", 0, 1, 2, 3), step("h", 4), Step{"cp", {3, 4}, {-pi / 2}},
            step("h", 4), step("c3x", 0, 1, 2, 3), step("c3sqrtx", 0, 1, 2, 4)),
  };
}

TEST(QuantumGates, AgreeWithTheirDefinitions) {
  for (const Case& one : cases()) {
    std::vector<int> qubits;
    for (int k = 0; k < one.qubits; ++k) qubits.push_back(k);
    Matrix expected = on_all(gate("id", {0}), one.qubits);
    for (const Step& step : one.body) {
      expected =
          product(on_all(gate(step.name, step.qubits, step.parameters), one.qubits), expected, size_of(one.qubits));
    }
    const Matrix found = on_all(gate(one.name, qubits, one.parameters), one.qubits);
    EXPECT_LT(difference(found, expected), 1e-14) << one.name;
  }
}

TEST(QuantumGates, UIsTheFormula) {
  const Matrix m = matrix_of(gate("u", {3}, {th, ph, la}));
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

template <typename Function>
void expect_bad(Function function, const std::string& message) {
  try {
    function();
    FAIL() << "expected BadInput: " << message;
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(QuantumGates, SayWhatIsWrong) {
  expect_bad([] { (void)gate("cxx", {0, 1}); }, "found 'cxx'");
  expect_bad([] { (void)gate("cx", {0}); }, "gate cx: expected 2 qubits, found 1");
  expect_bad([] { (void)gate("h", {0}, {1.0}); }, "gate h: expected 0 parameters, found 1");
  expect_bad([] { (void)gate("rz", {0}); }, "gate rz: expected 1 parameter, found 0");
  expect_bad([] { (void)gate("mcx", {}); }, "at least 1 qubit");
  Operation measure;
  measure.kind = OperationKind::measure;
  measure.name = "measure";
  expect_bad([&] { (void)matrix_of(measure); }, "found 'measure'");
  EXPECT_FALSE(is_diagonal(measure));
}

}  // namespace
}  // namespace onehop::quantum
