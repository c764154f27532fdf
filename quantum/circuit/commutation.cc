#include "quantum/circuit/commutation.h"

#include <cmath>

namespace onehop::quantum::detail {
namespace {

bool near(Complex a, Complex b) { return std::abs(a - b) <= negligible; }

// Whether the matrix commutes with a Pauli matrix on one of its targets.
bool commutes(const std::vector<Complex>& m, std::size_t targets, std::size_t t, Letter letter) {
  const std::size_t size = std::size_t{1} << targets;
  const std::size_t bit = std::size_t{1} << t;
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = 0; c < size; ++c) {
      const bool differ = ((r ^ c) & bit) != 0;
      if (letter == Letter::z) {
        if (differ && !near(m[r * size + c], 0)) return false;
        continue;
      }
      // Y M Y has the entry of X M X with the sign of (-1)^(r differs from c).
      const Complex other = m[(r ^ bit) * size + (c ^ bit)];
      if (!near(m[r * size + c], letter == Letter::y && differ ? -other : other)) return false;
    }
  }
  return true;
}

Letter letter_of(const Operation& operation, std::size_t t) {
  for (const Letter letter : {Letter::z, Letter::x, Letter::y}) {
    if (commutes(operation.values, operation.targets.size(), t, letter)) return letter;
  }
  return Letter::any;
}

void add_matrix(const Operation& operation, Commutation& commutation) {
  for (std::size_t t = 0; t < operation.targets.size(); ++t) {
    const Letter letter = letter_of(operation, t);
    commutation.letters.emplace_back(operation.targets[t], letter);
    if (letter != Letter::z && !is_flip(operation)) commutation.local.push_back(operation.targets[t]);
  }
}

void add_rotation(const Operation& operation, Commutation& commutation) {
  for (std::size_t t = 0; t < operation.targets.size(); ++t) {
    commutation.letters.emplace_back(operation.targets[t], static_cast<Letter>(operation.paulis[t]));
    if (operation.paulis[t] != 'Z') commutation.local.push_back(operation.targets[t]);
  }
}

}  // namespace

bool is_flip(const Operation& operation) {
  return operation.kind == OperationKind::matrix && operation.targets.size() == 1 && operation.controls.empty() &&
         near(operation.values[0], 0) && near(operation.values[3], 0);
}

bool selects(const Operation& operation, std::size_t t) {
  return commutes(operation.values, operation.targets.size(), t, Letter::z);
}

Commutation commutation_of(const Operation& operation) {
  Commutation commutation;
  for (const int control : operation.controls) commutation.letters.emplace_back(control, Letter::z);
  switch (operation.kind) {
    case OperationKind::matrix:
      add_matrix(operation, commutation);
      break;
    case OperationKind::pauli_rotation:
      add_rotation(operation, commutation);
      break;
    case OperationKind::diagonal:
    case OperationKind::measure:
      for (const int target : operation.targets) commutation.letters.emplace_back(target, Letter::z);
      break;
    case OperationKind::swap:
      for (const int target : operation.targets) commutation.letters.emplace_back(target, Letter::any);
      commutation.local = operation.targets;
      break;
    case OperationKind::reset:
      for (const int target : operation.targets) commutation.letters.emplace_back(target, Letter::any);
      break;
    default:
      break;
  }
  return commutation;
}

bool is_plain_swap(const Operation& operation) {
  return operation.kind == OperationKind::swap && operation.controls.empty() && operation.condition.clbits.empty();
}

bool is_independent(const Operation& operation) {
  // The angles of gates that depend on parameters change from run to run.
  if (!operation.angles.empty()) return false;
  if (!operation.controls.empty() || !operation.condition.clbits.empty()) return false;
  if (operation.kind == OperationKind::reset) return true;
  return operation.targets.size() == 1 &&
         (operation.kind == OperationKind::matrix || operation.kind == OperationKind::diagonal ||
          operation.kind == OperationKind::pauli_rotation);
}

}  // namespace onehop::quantum::detail
