// Density matrices as state vectors of 2n qubits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include "onehop/error.h"
#include "onehop/quantum/program.h"
#include "quantum/circuit/random.h"
#include "quantum/simulator/kraus.h"
#include "quantum/simulator/shot_memory.h"
#include "quantum/state/pauli_masks.h"

namespace onehop::quantum {
namespace {

constexpr std::uint64_t sampling_event = std::uint64_t{1} << 40;  // beyond the events inside a program

// Moves bit i of the value to the bit of qubits[i].
std::uint64_t spread(std::uint64_t value, std::span<const int> qubits) {
  std::uint64_t result = 0;
  for (std::size_t i = 0; i < qubits.size(); ++i) result |= (value >> i & 1U) << qubits[i];
  return result;
}

std::vector<double> diagonal_of(const State& state) {
  const int qubits = state.qubits() / 2;
  std::vector<std::uint64_t> indices(std::size_t{1} << qubits);
  for (std::uint64_t i = 0; i < indices.size(); ++i) indices[i] = i | i << qubits;
  std::vector<double> result;
  result.reserve(indices.size());
  for (const Complex& entry : state.amplitudes(indices)) result.push_back(entry.real());
  return result;
}

// The gate on the columns of a matrix of some qubits: the complex conjugate, `qubits` higher.
Operation on_columns(Operation gate, int qubits) {
  for (auto* list : {&gate.targets, &gate.controls}) {
    for (int& qubit : *list) qubit += qubits;
  }
  for (Complex& value : gate.values) value = std::conj(value);
  // conj(exp(-i a/2 P)) = exp(i a/2 conj(P)), and conj(P) = -P for an odd number of Y in P.
  const bool odd = std::count(gate.paulis.begin(), gate.paulis.end(), 'Y') % 2 != 0;
  if (gate.kind != OperationKind::pauli_rotation || !odd) gate.angle = -gate.angle;
  return gate;
}

}  // namespace

void add_on_both(Circuit& both, Operation gate, int qubits) {
  gate.condition = {};
  both.operations.push_back(gate);
  both.operations.push_back(on_columns(std::move(gate), qubits));
}

Operation superoperator(const Channel& channel, std::vector<int> targets, int qubits) {
  const std::size_t size = std::size_t{1} << targets.size();
  std::vector<Complex> sum(size * size * size * size);
  for (const auto& k : channel.operators) {  // conj(K) (x) K
    for (std::size_t row = 0; row < size * size; ++row) {
      for (std::size_t column = 0; column < size * size; ++column) {
        sum[row * size * size + column] +=
            std::conj(k[row / size * size + column / size]) * k[row % size * size + column % size];
      }
    }
  }
  Operation result = kraus_operation(std::move(sum), size * size, 0);
  result.name = channel.name;
  for (const int target : std::vector<int>(targets)) targets.push_back(target + qubits);
  result.targets = std::move(targets);
  return result;
}

Circuit on_rows_and_columns(const Program& program) {
  const int qubits = program.circuit.qubits;
  Circuit both;
  both.qubits = 2 * qubits;
  for (const Operation& operation : program.circuit.operations) {
    if (operation.is_gate()) {
      add_on_both(both, operation, qubits);
    } else if (operation.kind == OperationKind::channel) {
      const Channel& channel = program.channels[static_cast<std::size_t>(operation.index)];
      both.operations.push_back(superoperator(channel, operation.targets, qubits));
    } else if (operation.kind == OperationKind::reset) {
      for (const int target : operation.targets) {
        both.operations.push_back(superoperator(reset_channel(), {target}, qubits));
      }
    }
  }
  return both;
}

std::vector<double> mixed_probabilities(const State& state, std::span<const int> qubits) {
  const std::vector<double> diagonal = diagonal_of(state);
  std::vector<double> result(std::size_t{1} << qubits.size());
  for (std::uint64_t index = 0; index < diagonal.size(); ++index) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < qubits.size(); ++i) value |= (index >> qubits[i] & 1U) << i;
    result[value] += diagonal[index];
  }
  return result;
}

std::vector<std::uint64_t> mixed_sample(const State& state, std::span<const int> qubits, std::int64_t shots,
                                        std::uint64_t seed) {
  check_shots_fit(state.group(), {"shots", shots, sizeof(std::uint64_t)});
  std::vector<double> sums = mixed_probabilities(state, qubits);
  for (double& p : sums) p = std::max(p, 0.0);
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  std::vector<std::uint64_t> result(static_cast<std::size_t>(shots));
  for (std::uint64_t shot = 0; shot < result.size(); ++shot) {
    const double drawn = detail::uniform(seed, shot, sampling_event) * sums.back();
    result[shot] = static_cast<std::uint64_t>(std::upper_bound(sums.begin(), sums.end(), drawn) - sums.begin());
  }
  return result;
}

std::vector<Complex> mixed_expectations(const State& state, std::span<const PauliSum> sums) {
  const int qubits = state.qubits() / 2;
  std::map<std::uint64_t, std::vector<Complex>> entries;  // for each x the <r| rho |r ^ x>
  std::vector<Complex> result;
  for (const PauliSum& sum : sums) {
    Complex total = 0;
    for (const PauliTerm& term : sum.terms) {
      const auto [x, z] = masks_of(term, qubits);
      std::vector<Complex>& row = entries[x];
      if (row.empty()) {
        std::vector<std::uint64_t> indices(std::size_t{1} << qubits);
        for (std::uint64_t r = 0; r < indices.size(); ++r) indices[r] = r | (r ^ x) << qubits;
        row = state.amplitudes(indices);
      }
      Complex value = 0;
      for (std::uint64_t r = 0; r < row.size(); ++r) value += std::popcount(r & z) % 2 != 0 ? -row[r] : row[r];
      constexpr Complex powers[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
      total += term.coefficient * powers[std::popcount(x & z) % 4] * value;
    }
    result.push_back(total);
  }
  return result;
}

std::vector<Complex> mixed_density_matrix(const State& state, std::span<const int> qubits) {
  const int all = state.qubits() / 2;
  std::vector<int> others;
  for (int qubit = 0; qubit < all; ++qubit) {
    if (std::find(qubits.begin(), qubits.end(), qubit) == qubits.end()) others.push_back(qubit);
  }
  const std::size_t size = std::size_t{1} << qubits.size();
  std::vector<Complex> result(size * size);
  std::vector<std::uint64_t> indices(size * size);
  for (std::uint64_t gone = 0; gone < std::uint64_t{1} << others.size(); ++gone) {
    const std::uint64_t rest = spread(gone, others);
    for (std::uint64_t i = 0; i < indices.size(); ++i) {
      indices[i] = (spread(i / size, qubits) | rest) | (spread(i % size, qubits) | rest) << all;
    }
    const std::vector<Complex> part = state.amplitudes(indices);
    std::transform(part.begin(), part.end(), result.begin(), result.begin(), std::plus<>());
  }
  return result;
}

void mixed_collapse(State& state, int qubit, int value, double probability) {
  state.collapse(qubit, value, probability);
  state.collapse(qubit + state.qubits() / 2, value, probability);
}

}  // namespace onehop::quantum
