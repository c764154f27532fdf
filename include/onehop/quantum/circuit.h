// A quantum circuit as plain data: operations on qubits and classical bits, in program order. It knows nothing of
// states or ranks.
//
// The order of bits everywhere in onehop.quantum is Qiskit's: qubit 0 is the least significant bit of an amplitude's
// index, and the first target of an operation is the least significant bit of its matrix's index.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace onehop::quantum {

using Complex = std::complex<double>;

inline constexpr int most_qubits = 10'000;  // of a circuit; a state has at most 62

enum class OperationKind : std::uint8_t {
  matrix,          // `values`: 4^k numbers, row-major, on k targets
  diagonal,        // `values`: 2^k numbers on k targets (none for k = 0: with controls, a phase of the controls)
  swap,            // exchanges two targets
  pauli_rotation,  // exp(-i angle/2 P), where P is the product of `paulis` (one of X, Y, Z per target)
  global_phase,    // exp(i angle); with controls it is a phase of the controls
  measure,         // target[i] -> clbits[i]
  reset,           // sets the targets to |0>
  barrier,         // keeps the operations before it before those after it
  assign,  // clbits[0] = whether `condition` holds; for branches whose body changes the bits of their own condition
  // Only in programs (program.h), where `index` says which one:
  channel,     // a channel on the targets
  misread,     // a readout error of clbits: `values` has in row a and column b the probability to read b for a
  save,        // keeps data of the state of the targets
  set_state,   // `values` replace the state of all qubits
  postselect,  // ends a run, which then counts for nothing, unless `condition` holds
  // Loops whose end depends on measurements, in circuits, too:
  mark,  // a place for jumps with its `index`
  jump,  // the run goes on at the mark if `condition` holds
};

// The condition of an operation: it is done if `clbits`, read as a number with clbits[0] least significant, equals
// `value`. Without clbits the operation is always done.
struct Condition {
  std::vector<int> clbits;
  std::uint64_t value = 0;
  bool negated = false;  // done if the number differs from `value` instead
  // Whether it holds for these classical bits.
  [[nodiscard]] bool holds(const std::vector<bool>& all) const;
  friend bool operator==(const Condition&, const Condition&) = default;
};

// A linear expression of a circuit's parameters: `constant` plus the sum of factor * value over (parameter, factor).
struct Expression {
  double constant = 0;
  std::vector<std::pair<int, double>> terms = {};  // each parameter, an index into Circuit::parameters, once
  [[nodiscard]] double value(std::span<const double> values) const;
  friend bool operator==(const Expression&, const Expression&) = default;
};

struct Operation {
  OperationKind kind = OperationKind::barrier;
  std::string name;                  // its name in the source ("cx", "rz"), for messages, profiles and statistics
  std::vector<int> targets;          // distinct
  std::vector<int> controls;         // distinct, none of them a target; allowed for the first five kinds
  std::uint64_t control_values = 0;  // bit i is the value that controls[i] must have (cx: 1)
  std::vector<Complex> values;
  std::string paulis;
  double angle = 0;
  std::vector<int> clbits;
  Condition condition;
  // The angles of a gate that depends on parameters, in the order of the gate `name`; for a pauli_rotation and a
  // global_phase the only one. Until `bind_parameters`, `values` and `angle` hold those of arbitrary angles. Empty: no
  // parameters.
  std::vector<Expression> angles = {};
  int index = 0;  // of a channel or saved data of a program, or of a mark
  friend bool operator==(const Operation&, const Operation&) = default;

  [[nodiscard]] bool is_gate() const noexcept { return kind <= OperationKind::global_phase; }
  // Whether it is of programs only.
  [[nodiscard]] bool is_of_programs() const noexcept {
    return kind > OperationKind::assign && kind < OperationKind::mark;
  }
};

// A classical register of the source, such as "c" of 3 bits beginning at classical bit 0.
struct Register {
  std::string name;
  int first = 0;
  int size = 0;
  friend bool operator==(const Register&, const Register&) = default;
};

struct Circuit {
  std::string name;
  int qubits = 0;
  int clbits = 0;                   // the classical bits of the source, in its order
  int hidden_clbits = 0;            // additional bits after them for `assign`; they never appear in counts
  std::vector<Register> registers;  // registers of clbits, to format counts as Qiskit does
  std::vector<Operation> operations;
  std::vector<std::string> parameters = {};  // their names, distinct

  // Throws BadInput that names the operation ("operation 17 (cx): ...") if it is one of programs only, if qubits or
  // bits do not exist or are repeated, if the number of values is wrong, if a matrix or diagonal is not unitary within
  // 1e-9 (checked only if `unitary`), if a Pauli is not X, Y or Z, if an angle names a parameter that does not exist,
  // or if a jump has no mark, or several.
  void validate(bool unitary = true) const;
  // Throws BadInput that names an operation and its parameter if a gate depends on one.
  void require_bound() const;
  // Whether a jump is in it, so that the number of its steps is not known before a run.
  [[nodiscard]] bool has_jumps() const;

  friend bool operator==(const Circuit&, const Circuit&) = default;
};

// Builds the operation of a named gate. Knows every name of OpenQASM 3's stdgates.inc and OpenQASM 2's qelib1.inc, with
// the same order of parameters (in radians) and qubits (controls first). Throws BadInput for an unknown name or a wrong
// number of parameters or qubits. docs/reference/quantum_gates.md lists the gates with their matrices.
[[nodiscard]] Operation gate(const std::string& name, const std::vector<int>& qubits,
                             const std::vector<double>& parameters = {});

// The same with angles that depend on parameters.
[[nodiscard]] Operation parametrised_gate(const std::string& name, const std::vector<int>& qubits,
                                          const std::vector<Expression>& angles);

// Throws BadInput for a wrong number of values of the parameters with these names, or one that is not finite.
void check_values(std::span<const double> values, std::span<const std::string> parameters);

// Gives each parameter a value: returns the circuit without parameters. Throws BadInput as check_values does.
[[nodiscard]] Circuit bind_parameters(const Circuit& circuit, std::span<const double> values);

// Rewrites every gate that depends on parameters as rotations exp(-i angle/2 P) about Pauli strings and as phases, each
// with one angle, and with the gate's controls. Returns the same circuit otherwise. `origin`: receives the index of the
// original operation for each one of the result; nullptr: not needed. Throws BadInput that names a gate which has no
// such form.
[[nodiscard]] Circuit with_rotations(const Circuit& circuit, std::vector<int>* origin = nullptr);

// The names that `gate` knows, with their numbers of qubits (-1: any) and parameters.
struct GateName {
  std::string name;
  int qubits = 0;
  int parameters = 0;
};
[[nodiscard]] const std::vector<GateName>& gate_names();

// The 2^k x 2^k matrix (row-major) that a gate applies to its k targets, without its controls. Throws BadInput if the
// operation is not a gate.
[[nodiscard]] std::vector<Complex> matrix_of(const Operation& operation);

// Whether the gate acts diagonally on its targets. Controls do not matter.
[[nodiscard]] bool is_diagonal(const Operation& operation);

}  // namespace onehop::quantum
