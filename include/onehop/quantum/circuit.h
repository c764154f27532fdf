// A quantum circuit as plain data: operations on qubits and classical bits, in program order. No state, no ranks.
//
// Order of bits, everywhere in onehop.quantum, is Qiskit's: qubit 0 is the least significant bit of an amplitude's index,
// and the first target of an operation is the least significant bit of its matrix's index.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

namespace onehop::quantum {

using Complex = std::complex<double>;

enum class OperationKind : std::uint8_t {
  matrix,          // `values`: 4^k numbers, row-major, on k targets
  diagonal,        // `values`: 2^k numbers on k targets (none for k = 0: with controls, a phase of the controls)
  swap,            // exchanges two targets; no arithmetic
  pauli_rotation,  // exp(-i angle/2 P), P the product of `paulis` (one of X, Y, Z per target)
  global_phase,    // exp(i angle); with controls it is a phase of the controls
  measure,         // target[i] -> clbits[i]
  reset,           // targets to |0>
  barrier,         // keeps what stands before it before it
  assign,          // clbits[0] = whether `condition` holds; for branches whose body changes what was asked
};

// Whether an operation is done: `clbits` read as a number (clbits[0] least significant) compared with
// `value`. No clbits: always.
struct Condition {
  std::vector<int> clbits;
  std::uint64_t value = 0;
  bool negated = false;  // done when the number is another one
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Operation {
  OperationKind kind = OperationKind::barrier;
  std::string name;                  // what the source called it ("cx", "rz"): for messages, profiles and statistics
  std::vector<int> targets;          // distinct
  std::vector<int> controls;         // distinct, none of them a target; allowed for the first five kinds
  std::uint64_t control_values = 0;  // bit i: the value that controls[i] must have (cx: 1)
  std::vector<Complex> values;
  std::string paulis;
  double angle = 0;
  std::vector<int> clbits;
  Condition condition;
  friend bool operator==(const Operation&, const Operation&) = default;

  [[nodiscard]] bool is_gate() const noexcept { return kind <= OperationKind::global_phase; }
};

// Where a name of the source stands in the counts: "c" of 3 bits beginning at classical bit 0.
struct Register {
  std::string name;
  int first = 0;
  int size = 0;
  friend bool operator==(const Register&, const Register&) = default;
};

struct Circuit {
  std::string name;
  int qubits = 0;
  int clbits = 0;                   // those of the source come first, in its order
  int hidden_clbits = 0;            // further ones after them, for `assign`; they never show in counts
  std::vector<Register> registers;  // of clbits; for showing counts as Qiskit does
  std::vector<Operation> operations;

  // Throws BadInput that names the operation ("operation 17 (cx): ..."): qubits or bits that do not exist or are repeated,
  // wrong number of values, a matrix or diagonal that is not unitary within 1e-9, Paulis that are not X, Y or Z.
  // `unitary` false: any matrix and diagonal will do.
  void validate(bool unitary = true) const;

  friend bool operator==(const Circuit&, const Circuit&) = default;
};

// Builds the operation of a named gate: every name of OpenQASM 3's stdgates.inc and OpenQASM 2's qelib1.inc, with their
// parameters (radians) in their order and their qubits in their order (controls first, as there). Throws BadInput for an unknown name, or a
// wrong number of parameters or qubits. docs/reference/quantum_gates.md lists the gates with their matrices.
[[nodiscard]] Operation gate(const std::string& name, const std::vector<int>& qubits,
                             const std::vector<double>& parameters = {});

// Every name that `gate` knows, with its numbers of qubits (-1: any) and parameters.
struct GateName {
  std::string name;
  int qubits = 0;
  int parameters = 0;
};
[[nodiscard]] const std::vector<GateName>& gate_names();

// The 2^k x 2^k matrix (row-major) that a gate applies to its targets, controls left out. Throws BadInput for what is no gate.
[[nodiscard]] std::vector<Complex> matrix_of(const Operation& operation);

// Whether the gate's action on its targets is diagonal (controls never matter to that).
[[nodiscard]] bool is_diagonal(const Operation& operation);

}  // namespace onehop::quantum
