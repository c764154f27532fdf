// The commutation structure of an operation: on each wire, the Pauli matrix that it commutes with, and the wires that
// must be local.
#pragma once

#include <utility>
#include <vector>

#include "onehop/quantum/circuit.h"

namespace onehop::quantum::detail {

// The form of an operation on one wire: a combination of the identity and this Pauli matrix, or `any` other form. Two
// operations commute if their letters agree, and are not `any`, on every wire that they share.
enum class Letter : char { z = 'Z', x = 'X', y = 'Y', any = '*' };

struct Commutation {
  std::vector<std::pair<int, Letter>> letters;  // for each wire that the operation touches
  std::vector<int> local;                       // wires that must be local
};

[[nodiscard]] Commutation commutation_of(const Operation& operation);

// Matrix entries below this count as zero when the form of a matrix is determined.
inline constexpr double negligible = 1e-15;

// Whether the operation is an uncontrolled one-target matrix with a zero diagonal (X, Y, ...), which is X times a
// diagonal matrix.
[[nodiscard]] bool is_flip(const Operation& operation);

// Whether the operation is a swap that only renames wires.
[[nodiscard]] bool is_plain_swap(const Operation& operation);

// Whether the operation, at the beginning of its wires, becomes a part of their first state: a gate on one wire that
// does not depend on parameters, or a reset, which then draws nothing.
[[nodiscard]] bool is_independent(const Operation& operation);

// Whether a matrix is block-diagonal in target `t`: no entry connects the two values of that target.
[[nodiscard]] bool selects(const Operation& operation, std::size_t t);

}  // namespace onehop::quantum::detail
