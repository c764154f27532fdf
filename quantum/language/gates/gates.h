// Gates of a program: those of the libraries, and its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/quantum/circuit.h"
#include "quantum/language/syntax/syntax.h"

namespace onehop::quantum::language {

struct Gate {
  std::string_view name;
  int qubits = 0;  // -1: any number, at least 1
  int parameters = 0;
  const Statement* definition = nullptr;  // none: `name` is a gate of onehop::quantum::gate
  bool opaque = false;
  std::int64_t cost = 1;  // operations of a call, at least
  bool smooth = true;     // whether its matrix has no steps and no corners as its parameters change
};

// The gates that an included library has; none if it is no library of onehop. "braket" has the gates that programs of
// Amazon Braket use without an include.
[[nodiscard]] std::vector<std::string_view> library_gates(std::string_view file);
[[nodiscard]] std::vector<std::string_view> gates_without_include(int version);
// Definitions of further gates of a library.
[[nodiscard]] std::string_view library_text(std::string_view file);

// Modifiers of a gate that is written as operations without conditions. Each returns an empty text, or what is wrong.
// `values` has bit i where controls[i] must be 1.
void add_controls(std::vector<Operation>& gate, const std::vector<int>& controls, std::uint64_t values);
[[nodiscard]] std::string invert(std::vector<Operation>& gate);
[[nodiscard]] std::string raise(std::vector<Operation>& gate, double power);

// The matrix, row-major, of operations on these qubits, the first one least significant.
[[nodiscard]] std::vector<Complex> matrix_of(const std::vector<Operation>& gate, const std::vector<int>& qubits);
// A power of a unitary matrix, with roots of its eigenvalues whose phases are in (-pi, pi].
[[nodiscard]] std::vector<Complex> power_of(const std::vector<Complex>& matrix, double power);
// The phases, in (-pi, pi], of the eigenvalues of a unitary matrix. `vectors` receives its eigenvectors as columns.
[[nodiscard]] std::vector<double> eigenphases(const std::vector<Complex>& matrix, std::vector<Complex>& vectors);

}  // namespace onehop::quantum::language
