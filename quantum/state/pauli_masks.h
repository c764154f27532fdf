// Pauli strings as masks of qubits.
#pragma once

#include <compare>
#include <cstdint>

#include "onehop/quantum/observable.h"

namespace onehop::quantum {

// x where the string has X or Y, z where it has Z or Y.
struct Masks {
  std::uint64_t x = 0;
  std::uint64_t z = 0;
  auto operator<=>(const Masks&) const = default;
};

// Throws BadInput for a qubit that is not below `qubits`, or that has two letters.
[[nodiscard]] Masks masks_of(const PauliTerm& term, int qubits);

// Throws BadInput for a qubit that does not exist, or for a weight that is not real if `hermitian`.
void check_observables(std::span<const PauliSum> sums, int qubits, bool hermitian);

}  // namespace onehop::quantum
