// What an operation needs of its qubits: which have to be local, and with what it commutes.
#pragma once

#include <utility>
#include <vector>

#include "onehop/quantum/circuit.h"

namespace onehop::quantum::detail {

// What an operation is on one wire. Two operations whose letters agree (and are not `any`) on every wire that they share commute: each is
// made of the identity and that one Pauli matrix there.
enum class Letter : char { z = 'Z', x = 'X', y = 'Y', any = '*' };

struct Structure {
  std::vector<std::pair<int, Letter>> letters;  // each wire it touches
  std::vector<int> local;                       // wires that must be local
};

[[nodiscard]] Structure structure_of(const Operation& operation);

// Entries below this count as zero where the form of a matrix is looked at.
inline constexpr double negligible = 1e-15;

// A matrix on one target with nothing on its diagonal (X, Y, ...), no controls: an X and a diagonal.
[[nodiscard]] bool is_flip(const Operation& operation);

// Whether target `t` of a matrix only selects: no entry leads from one of its values to the other.
[[nodiscard]] bool selects(const Operation& operation, std::size_t t);

}  // namespace onehop::quantum::detail
