// Channels as operations: their Kraus operators on a state vector, and their superoperators on a density matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onehop/quantum/program.h"

namespace onehop::quantum {

// The operation of a matrix of size x size numbers without its targets; a diagonal if all other numbers are within
// `negligible` of 0.
[[nodiscard]] Operation kraus_operation(std::vector<Complex> matrix, std::size_t size, double negligible = 1e-14);

// A channel with all that a walk needs of it more than once.
struct KrausOperators {
  explicit KrausOperators(const Channel& channel);
  std::vector<Operation> operators;            // without targets; if they mix unitary matrices, normalised
  std::vector<bool> does_nothing;              // whether an operator is the identity
  std::vector<std::vector<Complex>> products;  // K^dagger K; only the diagonals if `diagonal`
  bool diagonal = true;                        // whether all products are diagonal
  std::vector<double> probabilities;           // empty: they depend on the state
  std::uint32_t usual = 0;                     // the operator of the largest weight

  // An operator on these targets.
  [[nodiscard]] Operation on(std::vector<int> targets, std::size_t which) const;
  // |K psi|^2 for each operator K. Collective.
  [[nodiscard]] std::vector<double> weights(State& state, std::span<const int> targets) const;
};

// The first operator other than `usual` at which the sum of the weights exceeds `number`, from 0 to that of all others;
// `usual` if these vanish within rounding.
[[nodiscard]] std::uint32_t other_operator(std::span<const double> weights, std::uint32_t usual, double number);

// Appends a gate on the rows and the columns of a density matrix, without its condition.
void add_on_both(Circuit& both, Operation gate, int qubits);
// A channel on the rows and the columns of a density matrix.
[[nodiscard]] Operation superoperator(const Channel& channel, std::vector<int> targets, int qubits);

// A reset as a channel on its qubit.
[[nodiscard]] const Channel& reset_channel();

}  // namespace onehop::quantum
