// Observables: weighted sums of Pauli strings and their expectation values.
#pragma once

#include <complex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "onehop/quantum/state.h"

namespace onehop::quantum {

struct PauliTerm {
  std::complex<double> coefficient = 1;
  std::vector<std::pair<int, char>> paulis =
      {};  // pairs (qubit, 'X', 'Y' or 'Z'), each qubit once; empty: the identity
  friend bool operator==(const PauliTerm&, const PauliTerm&) = default;
};

struct PauliSum {
  std::vector<PauliTerm> terms;

  // Parses text such as "Z0 Z1 + 0.5*X2 - 2 I": each term is an optional number, then letters with their qubits. Throws
  // BadInput that names the position of the first error.
  [[nodiscard]] static PauliSum parse(const std::string& text);
  // One more than the highest qubit; 0 if there is none.
  [[nodiscard]] int qubits() const noexcept;
  friend bool operator==(const PauliSum&, const PauliSum&) = default;
};

// Returns <state| sum |state> for each sum. Collective. Each distinct string is evaluated once. Strings whose X and Y
// act on local bits are evaluated together in as few passes as possible, and exchanges bring many of the others into
// this form at once. The exchanges may change the state's layout, but not the state. Throws BadInput for a qubit that
// the state does not have.
[[nodiscard]] std::vector<std::complex<double>> expectations(State& state, std::span<const PauliSum> sums);

// Adds `scale` times the sum applied to `state` to `result`, which must have the same size, precision, ranks and
// layout, and keeps that layout. Collective. Throws BadInput.
void add_applied(const State& state, const PauliSum& sum, double scale, State& result);

// result = sum |state>, with the layout of `state`. Returns <state| sum |state>. Collective. Throws BadInput as
// add_applied does.
std::complex<double> apply_sum(const State& state, const PauliSum& sum, State& result);

// Returns <state| sum^2 |state> - <state| sum |state>^2 for each Hermitian sum, at least 0. Collective. Needs a second
// state. Throws BadInput for a sum that is not Hermitian or has a qubit that the state does not have.
[[nodiscard]] std::vector<double> variances(const State& state, std::span<const PauliSum> sums);

}  // namespace onehop::quantum
