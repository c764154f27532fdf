// Programs in OpenQASM and the operations that they give. tests/quantum/test_qasm.py compares whole circuits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/language.h"
#include "tests/support/thrown.h"

namespace onehop::quantum {
namespace {

const std::string head = "OPENQASM 3.0; include \"stdgates.inc\"; qubit[4] q; bit[4] c;\n";

// Names and qubits of the operations, controls first: "cx 0 1, h 2".
std::string steps(const std::string& program) {
  std::string found;
  for (const Operation& one : read_qasm(program).operations) {
    found += (found.empty() ? "" : ", ") + one.name;
    for (const int qubit : one.controls) found += " " + std::to_string(qubit);
    for (const int qubit : one.targets) found += " " + std::to_string(qubit);
  }
  return found;
}

// What an integer expression is, as the number of a qubit.
int value(const std::string& expression, const std::string& before = "") {
  const Circuit circuit =
      read_qasm("OPENQASM 3; include \"stdgates.inc\"; qubit[60] q; " + before + " x q[" + expression + "];");
  return circuit.operations.back().targets[0];
}

TEST(Language, GatesOfBothVersions) {
  EXPECT_EQ(steps("OPENQASM 2.0; include \"qelib1.inc\"; qreg q[2]; creg c[2]; h q; cx q[0], q[1]; measure q -> c;"),
            "h 0, h 1, cx 0 1, measure 0 1");
  EXPECT_EQ(steps("include \"qelib1.inc\"; qreg q[2]; h q[0];"), "h 0");  // no version, but a qreg
  EXPECT_EQ(steps(head + "cx q[0:1], q[2:3]; ctrl @ x q[0], q[1]; U(0, 0, 0) q[{3, 1}];"),
            "cx 0 2, cx 1 3, x 0 1, U 3, U 1");
  EXPECT_EQ(steps("OPENQASM 3; U(0, 0, 0) $2;"), "U 2");
}

TEST(Language, ExpressionsKeepTheirPrecedence) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("2 ** 3 ** 1 - 7 % 4"), 5);
  EXPECT_EQ(value("7 / 2"), 3);
  EXPECT_EQ(value("1 << 3 | 1"), 9);
  EXPECT_EQ(value("6 & 3 ^ 1"), 3);
  EXPECT_EQ(value("~int[8](-3)"), 2);
  EXPECT_EQ(value("int(3.9) + int(true)"), 4);
  EXPECT_EQ(value("uint[2](7)"), 3);
  EXPECT_EQ(value("popcount(\"1101\") + rotl(uint[4](9), 1)"), 6);
  EXPECT_EQ(value("0x1F - 0b11 - 0o7 - 1_0"), 11);
  EXPECT_EQ(value("int(10 * sin(pi / 2)) + int(real(2 + 3 im)) + sizeof(a)", "array[int, 5] a;"), 17);
  EXPECT_EQ(value("int[4](angle[4](pi))"), -8 + 60);
}

TEST(Language, NumbersAbove2To63) {
  EXPECT_EQ(value("int(u > 5) + 2 * int(5 < u) + 4 * int(u == -1)", "uint[64] u = -1; "), 3);
  EXPECT_EQ(value("u / 4611686018427387904 + u % 10", "uint[64] u = -1; "), 8);
  EXPECT_EQ(value("uint[64](bit[64](a)) >> 60", "angle[64] a = 3 * pi / 2; "), 12);
}

// The bits of a number, the most significant first, of which all but a few are 1.
std::string ones_but(int bits, const std::vector<int>& zeros) {
  std::string found(static_cast<std::size_t>(bits), '1');
  for (const int zero : zeros) found[static_cast<std::size_t>(bits - 1 - zero)] = '0';
  return found;
}

// Under the address sanitizer, also that numbers are read from a text that is still there.
TEST(Language, ComparisonsOfLongRegisters) {
  for (const int bits : {63, 64, 65, 128, 300}) {
    const std::string own = ones_but(bits, {1});
    const std::string declared = "const bit[" + std::to_string(bits) + "] c = \"" + own + "\"; ";
    for (const std::vector<int>& zeros : {std::vector{1}, {0}, {1, 0}, {bits - 1}, {}}) {
      const std::string other = ones_but(bits, zeros);
      const int less = own < other ? 1 : 0;
      const int equal = own == other ? 1 : 0;
      const std::string text = "\"" + other + "\"";
      EXPECT_EQ(value("int(c < " + text + ") + 2 * int(c == " + text + ") + 4 * int(c >= " + text + ") + 8 * int(" +
                          text + " <= c) + 16 * int(c != " + text + ") + 32 * int(" + text + " > c)",
                      declared),
                less + 2 * equal + 4 * (1 - less) + 8 * (1 - less) + 16 * (1 - equal) + 32 * less)
          << bits << " " << other;
    }
  }
  const std::string two = "OPENQASM 2.0; include \"qelib1.inc\"; qreg q[1]; creg c[70]; ";
  EXPECT_EQ(steps(two + "measure q[0] -> c[69]; if (c == 590_295810358705651712) x q[0];").substr(0, 9), "measure 0");
}

TEST(Language, SignsBehindOperators) {
  EXPECT_EQ(steps("OPENQASM 2.0; qreg q[1]; U(1++2, ++1, 1+-+1) q[0];"), "U 0");
  EXPECT_THROW((void)read_qasm(head + "rx(1++2) q[0];"), BadInput);
}

TEST(Language, VariablesArraysAndAliases) {
  EXPECT_EQ(value("n", "const uint n = 4; "), 4);
  EXPECT_EQ(value("n", "int n = 4; n *= 3; n -= 1; n >>= 1;"), 5);
  EXPECT_EQ(value("a[1][0] + a[0, 1]", "array[int[8], 2, 2] a = {{1, 2}, {3, 4}}; a[1][0] = 7;"), 9);
  EXPECT_EQ(value("int[4](u)", "uint[4] u = 5; u[1] = true;"), 7);
  EXPECT_EQ(steps(head + "let a = q[2:3] ++ q[0]; x a[0]; x a[2]; let b = a[1:2]; h b;"), "x 2, x 0, h 3, h 0");
}

TEST(Language, LoopsAndBranches) {
  EXPECT_EQ(steps(head + "for uint i in [0:2:3] { x q[i]; } for int i in {3, 1} h q[i];"), "x 0, x 2, h 3, h 1");
  EXPECT_EQ(steps(head + "int i = 0; while (i < 9) { i += 1; if (i == 2) continue; if (i > 3) break; x q[i]; }"),
            "x 1, x 3");
  EXPECT_EQ(steps(head + "int i = 2; switch (i) { case 0, 1 { x q[0]; } case 2 { h q[0]; } default { z q[0]; } }"),
            "h 0");
  EXPECT_EQ(steps(head + "x q[0]; end; x q[1];"), "x 0");
  EXPECT_EQ(steps(head + "def f(qubit a, int n) -> int { if (n == 0) { return 2; } x a; return n; } x q[f(q[0], 3)];"),
            "x 0, x 3");
}

TEST(Language, SubroutinesThatCallThemselves) {
  EXPECT_EQ(value("f(4)", "def f(int n) -> int { if (n <= 1) { return 1; } return n * f(n - 1); }"), 24);
  EXPECT_EQ(value("a[0][0] + a[0][1]",
                  "def f(mutable array[int, 2, 2] b) -> int { b[1] = b[0]; b[0, 0] = 4; return 1; } "
                  "array[int, 2, 2] a = {{1, 2}, {3, 4}}; a[0][f(a)] = 9;"),
            10);
}

TEST(Language, ConditionsOnMeasurements) {
  const Circuit circuit =
      read_qasm(head + "c[0:1] = measure q[0:1]; if (c[0]) x q[1]; if (c == 3) { x q[2]; } else x q[3];");
  ASSERT_EQ(circuit.operations.size(), 4U);
  EXPECT_EQ(circuit.hidden_clbits, 0);
  EXPECT_EQ(circuit.operations[1].condition, (Condition{{0}, 1}));
  EXPECT_EQ(circuit.operations[2].condition, (Condition{{0, 1}, 3}));
  EXPECT_EQ(circuit.operations[3].condition, (Condition{{0, 1}, 3, true}));
}

TEST(Language, ConditionsKeepTheirValueWhileTheirBitsChange) {
  const Circuit circuit =
      read_qasm(head + "c[0] = measure q[0]; if (c[0]) { c[0] = measure q[1]; x q[2]; } else x q[3];");
  const Operation& last = circuit.operations.back();
  ASSERT_EQ(last.condition.clbits.size(), 1U);
  EXPECT_GE(last.condition.clbits[0], circuit.clbits);
  EXPECT_EQ(last.condition.value, 0U);
}

TEST(Language, BitsThatAreKnownNeedNoCondition) {
  EXPECT_EQ(steps(head + "if (c[0]) x q[0]; c[1] = 1; if (c[1]) x q[1];"), "assign, x 1");
}

// The value that a program leaves in an output when its qubits, which X prepares, are measured.
std::uint64_t output(const std::string& program) {
  const Circuit circuit = read_qasm("OPENQASM 3; include \"stdgates.inc\"; qubit[2] q; bit c; " + program);
  std::vector<int> qubits(2, 0);
  std::vector<int> bits(static_cast<std::size_t>(circuit.clbits + circuit.hidden_clbits), 0);
  const auto holds = [&bits](const Condition& condition) {
    bool same = true;
    for (std::size_t k = 0; k < condition.clbits.size(); ++k) {
      same = same && bits[static_cast<std::size_t>(condition.clbits[k])] == static_cast<int>(condition.value >> k & 1U);
    }
    return condition.clbits.empty() || same != condition.negated;
  };
  for (const Operation& one : circuit.operations) {
    if (one.kind == OperationKind::assign) {
      bits[static_cast<std::size_t>(one.clbits[0])] = holds(one.condition) ? 1 : 0;
      continue;
    }
    if (!holds(one.condition)) continue;
    for (std::size_t k = 0; k < one.targets.size(); ++k) {
      int& qubit = qubits[static_cast<std::size_t>(one.targets[k])];
      if (one.kind == OperationKind::measure) bits[static_cast<std::size_t>(one.clbits[k])] = qubit;
      if (one.name == "x") qubit ^= 1;
    }
  }
  const Register& last = circuit.registers.back();
  std::uint64_t value = 0;
  for (int k = 0; k < last.size; ++k) {
    value |= static_cast<std::uint64_t>(bits[static_cast<std::size_t>(last.first + k)]) << k;
  }
  return value;
}

TEST(Language, OutputsKeepTheValueThatTheyHaveAtTheEnd) {
  const std::string program = "output uint[4] n; n = 2; c = measure q[0]; if (c) end; n = 3;";
  EXPECT_EQ(output(program), 3U);
  EXPECT_EQ(output("x q[0]; " + program), 2U);
  const std::string loop =
      "output uint[4] n; n = 5; for int i in [0:1] { c = measure q[i]; if (c) { n = i; end; } } n += 1;";
  EXPECT_EQ(output(loop), 6U);
  EXPECT_EQ(output("x q[0]; " + loop), 0U);
  EXPECT_EQ(output("x q[1]; " + loop), 1U);
}

TEST(Language, GatesOfLargeAnglesAreUnitary) {
  read_qasm(head + "u3(7e15, 0.1, -1e22) q[0]; cu(363333820, 0.9, 1e308, -0.1) q[0], q[1]; u2(7e15, 9e18) q;")
      .validate();
}

TEST(Language, InputsBecomeParameters) {
  const Circuit circuit = read_qasm("OPENQASM 3; include \"stdgates.inc\"; input float a; qubit q; rx(2 * a + 1) q;");
  EXPECT_EQ(circuit.parameters, std::vector<std::string>{"a"});
  ASSERT_EQ(circuit.operations[0].angles.size(), 1U);
  EXPECT_EQ(circuit.operations[0].angles[0], (Expression{1, {{0, 2.0}}}));
}

TEST(Language, AnglesOfMeasuredBits) {
  const Circuit circuit = read_qasm(head + "angle[2] a; a[0] = measure q[0]; a[1] = measure q[1]; p(a) q[2];");
  const Operation& low = circuit.operations[circuit.operations.size() - 2];
  const Operation& high = circuit.operations.back();
  EXPECT_NEAR(low.angle, M_PI / 2, 1e-15);
  EXPECT_NEAR(high.angle, M_PI, 1e-15);
  EXPECT_NE(low.condition, high.condition);
}

TEST(Language, GatesOfTheProgramComeBeforeThoseOfALibrary) {
  EXPECT_EQ(steps(head + "gate h a { x a; } h q[0]; gate cz a, b { cx a, b; } cz q[0], q[1];"), "x 0, cx 0 1");
  // A definition that says the same is the gate itself.
  EXPECT_EQ(steps(head + "gate rzz(t) a, b { cx a, b; rz(t) b; cx a, b; } rzz(1) q[0], q[1];"), "rzz 0 1");
  // One that says the same for some angles is not.
  for (const std::string body : {"U(0, 0, arccos(cos(t))) a;", "if (t < 2) { U(0, 0, t) a; }", "U(0, 0, t % 5) a;",
                                 "pow(0.5) @ U(0, 0, 2 * t) a;", "f(t) a;", "U(0, 0, 0.3) a;", "U(0, 0, n * t) a;"}) {
    EXPECT_EQ(
        steps(head + "int n = 1; gate f(t) a { U(0, 0, arcsin(sin(t))) a; } gate p(t) a { " + body + " } p(0.3) q[0];"),
        "U 0");
  }
}

TEST(Language, PowersOfLargeGates) {
  std::string program = "OPENQASM 3; include \"stdgates.inc\"; qubit[8] q; gate g a, b, c, d, e, f, i, j { ";
  for (const char* const pair : {"a, b", "b, c", "c, d", "d, e", "e, f", "f, i", "i, j"}) {
    program += "h a; cx " + std::string(pair) + "; ry(0.3) b; t f; ";
  }
  program += "} ";
  const std::string call = " @ g q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7];";
  const Circuit root = read_qasm(program + "pow(0.5)" + call);
  const Circuit whole = read_qasm(program + "pow(2) @ pow(0.5)" + call);
  const Circuit plain = read_qasm(program + "pow(1.0) @ pow(1000000001) @ pow(0)" + call);
  EXPECT_EQ(root.operations.size(), 1U);
  EXPECT_TRUE(plain.operations.empty());
  root.validate();
  // The square of the root is the gate: its inverse undoes it.
  const Circuit inverse = read_qasm(program + "pow(-1)" + call);
  std::vector<Complex> state(256, 0);
  state[5] = 1;
  const auto apply = [&state](const Circuit& circuit) {
    for (const Operation& one : circuit.operations) {
      std::vector<int> qubits = one.targets;
      const std::vector<Complex> matrix = matrix_of(one);
      std::vector<Complex> next(state.size(), 0);
      for (std::size_t k = 0; k < state.size(); ++k) {
        bool acts = true;
        for (std::size_t i = 0; i < one.controls.size(); ++i) {
          acts = acts && (k >> one.controls[i] & 1U) == (one.control_values >> i & 1U);
        }
        std::size_t column = 0;
        for (std::size_t i = 0; i < qubits.size(); ++i) column |= (k >> qubits[i] & 1U) << i;
        const std::size_t size = std::size_t{1} << qubits.size();
        for (std::size_t row = 0; row < size; ++row) {
          std::size_t to = k;
          for (std::size_t i = 0; i < qubits.size(); ++i) {
            to = (to & ~(std::size_t{1} << qubits[i])) | (row >> i & 1U) << qubits[i];
          }
          next[acts ? to : k] += acts ? matrix[row * size + column] * state[k] : (row == 0 ? state[k] : 0.0);
        }
      }
      state = std::move(next);
    }
  };
  apply(whole);
  apply(inverse);
  EXPECT_NEAR(std::abs(state[5]), 1, 1e-9);
}

TEST(Language, ArithmeticOfMeasuredBitsKeepsTheLimit) {
  ReadOptions options;
  options.operations = 10000;
  const std::string product = "c[0] = measure q[0]; uint[64] u = uint[4](c);\nfor int i in [0:99] { u = u * u + 3; }";
  const std::string message = testing::thrown<BadInput>([&] { (void)read_qasm(head + product, options); });
  EXPECT_TRUE(message.starts_with("<text>:3:23: expected at most 10000 operations")) << message;
}

TEST(Language, LoopsWithoutAnEndReachTheirLimitSoon) {
  ReadOptions options;
  options.operations = 16000;
  const std::string message =
      testing::thrown<BadInput>([&] { (void)read_qasm(head + "while (true) x q[0];", options); });
  EXPECT_TRUE(message.starts_with("<text>:2:1: expected a while loop of at most 1000 operations")) << message;
}

TEST(Language, PowersKeepTheLimitOfTime) {
  ReadOptions options;
  options.seconds = 0.2;
  const std::string program =
      "OPENQASM 3; include \"stdgates.inc\"; qubit[7] q; gate g a, b, c, d, e, f, h { cx a, b; cx b, c; cx c, d; "
      "cx d, e; cx e, f; cx f, h; h a; } for int i in [0:10000] { pow(0.3) @ g q[0], q[1], q[2], q[3], q[4], q[5], "
      "q[6]; }";
  const std::string message = testing::thrown<BadInput>([&] { (void)read_qasm(program, options); });
  EXPECT_NE(message.find("expected a circuit that is read within 0.2 s"), std::string::npos) << message;
}

TEST(Language, ManyElements) {
  std::string program = head;
  for (int k = 0; k < 40; ++k) program += "array[int, 1048576] a" + std::to_string(k) + ";\n";
  ReadOptions options;
  options.bytes = std::int64_t{64} << 20;
  std::string message = testing::thrown<BadInput>([&] { (void)read_qasm(program, options); });
  EXPECT_TRUE(message.starts_with("<text>:2:21: there is not enough memory")) << message;
  options.bytes = std::int64_t{16} << 30;
  options.operations = 100000;
  message = testing::thrown<BadInput>([&] { (void)read_qasm(program, options); });
  EXPECT_TRUE(message.starts_with("<text>:2:21: expected at most 100000 operations")) << message;
}

TEST(Language, ManyIndices) {
  std::string program = head + "int a = 1; a";
  for (int k = 0; k < 100000; ++k) program += "[0]";
  EXPECT_THROW((void)read_qasm(program + " = 1;"), BadInput);
}

TEST(Language, Refusals) {
  for (const auto& [program, message] : std::vector<std::pair<std::string, std::string>>{
           {"OPENQASM 3; qubit q; u(1) q;", "<text>:1:22: gate 'u' is not defined"},
           {head + "x q[9];", "<text>:2:5: index 9 is out of range"},
           {"", "<text>:1:1: expected an OpenQASM program"},
           {head + "def f(qubit a) { x a; }\ndef f(qubit a) { h a; }", "<text>:3:5: 'f' is defined already"},
           {head + "gate h a { x a; }\ndef h(qubit a) { x a; }", "<text>:3:5: 'h' is defined already"},
           {head + "gate h a { U(pi/2, 0, pi) a; }\ngate h a { x a; }", "<text>:3:6: 'h' is defined already"},
           {"OPENQASM 3; bit b;", "expected at least 1 qubit"}}) {
    EXPECT_NE(testing::thrown<BadInput>([&] { (void)read_qasm(program); }).find(message), std::string::npos) << program;
  }
}

}  // namespace
}  // namespace onehop::quantum
