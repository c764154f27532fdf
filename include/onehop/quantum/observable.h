// Observables: weighted sums of Pauli strings, and their expectation values.
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
  std::vector<std::pair<int, char>> paulis = {};  // (qubit, X, Y or Z), each qubit once; none: the identity
  friend bool operator==(const PauliTerm&, const PauliTerm&) = default;
};

struct PauliSum {
  std::vector<PauliTerm> terms;

  // "Z0 Z1 + 0.5*X2 - 2 I": a number, if any, then letters with their qubits. Throws BadInput with the place that it could not read.
  [[nodiscard]] static PauliSum parse(const std::string& text);
  // One more than the highest qubit.
  [[nodiscard]] int qubits() const noexcept;
  friend bool operator==(const PauliSum&, const PauliSum&) = default;
};

// <state| sum |state> of each sum. Collective. Terms are looked at together wherever they may be: each string once, those whose X and Y
// are on local bits in as few passes as the engine can, and the state is exchanged so that many become so at once; the amplitudes themselves
// stay as they are. Throws BadInput for a qubit that the state does not have.
[[nodiscard]] std::vector<std::complex<double>> expectations(State& state, std::span<const PauliSum> sums);

}  // namespace onehop::quantum
