#include "quantum/placement/baselines.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace onehop::quantum::detail {
namespace {

// Counts the remote targets on which the gate is not diagonal. The kind of the operation decides; matrices are not
// inspected.
int remote_targets(const Operation& operation, int local_bits) {
  if (operation.kind != OperationKind::matrix && operation.kind != OperationKind::pauli_rotation) return 0;
  int count = 0;
  for (std::size_t t = 0; t < operation.targets.size(); ++t) {
    const bool moves = operation.kind == OperationKind::matrix || operation.paulis[t] != 'Z';
    if (moves && operation.targets[t] >= local_bits) ++count;
  }
  return count;
}

// A swap exchanges half of the amplitudes whose controls hold, unless both targets are local.
double cost_of_swap(const Operation& operation, int local_bits) {
  const bool moves = std::max(operation.targets[0], operation.targets[1]) >= local_bits;
  return moves ? std::ldexp(0.5, -static_cast<int>(operation.controls.size())) : 0;
}

double gate_by_gate(const Operation& operation, int local_bits) {
  if (operation.kind == OperationKind::swap) return cost_of_swap(operation, local_bits);
  const int remote = remote_targets(operation, local_bits);
  if (remote == 0) return 0;
  // Gates with one target and Pauli strings need only those amplitudes of the partner whose controls hold.
  if (operation.targets.size() == 1 || operation.kind == OperationKind::pauli_rotation) {
    return std::ldexp(1.0, -static_cast<int>(operation.controls.size()));
  }
  return remote;
}

double one_swap_at_a_time(const Operation& operation, int local_bits) {
  if (operation.kind == OperationKind::swap) return cost_of_swap(operation, local_bits);
  return remote_targets(operation, local_bits);
}

// Each wire that is swapped in costs half a partition. The least recently used wire is swapped out.
class LazySwaps {
 public:
  LazySwaps(int qubits, int local_bits) : local_bits_(local_bits) {
    for (int i = 0; i < qubits; ++i) {
      bits_.push_back(i);
      used_.push_back(-1);
    }
  }

  double cost(const Operation& operation, int time) {
    if (operation.kind == OperationKind::swap && operation.controls.empty()) {
      std::swap(bit(operation.targets[0]), bit(operation.targets[1]));
      return 0;
    }
    for (const int target : operation.targets) used_[static_cast<std::size_t>(target)] = time;
    double sum = 0;
    for (std::size_t t = 0; t < operation.targets.size(); ++t) {
      const bool moves = operation.kind == OperationKind::matrix || operation.kind == OperationKind::swap ||
                         (operation.kind == OperationKind::pauli_rotation && operation.paulis[t] != 'Z');
      if (!moves || bit(operation.targets[t]) < local_bits_) continue;
      std::swap(bits_.at(static_cast<std::size_t>(operation.targets[t])), bits_.at(static_cast<std::size_t>(oldest())));
      sum += 0.5;
    }
    return sum;
  }

 private:
  int& bit(int wire) { return bits_[static_cast<std::size_t>(wire)]; }
  int oldest() {
    std::size_t found = bits_.size();
    for (std::size_t wire = 0; wire < bits_.size(); ++wire) {
      if (bits_[wire] < local_bits_ && (found == bits_.size() || used_[wire] < used_[found])) found = wire;
    }
    return static_cast<int>(found);
  }

  int local_bits_;
  std::vector<int> bits_;
  std::vector<int> used_;
};

}  // namespace

Baselines baselines_of(const Circuit& circuit, int local_bits) {
  Baselines sum;
  LazySwaps lazy(circuit.qubits, local_bits);
  int time = 0;
  for (const Operation& operation : circuit.operations) {
    sum.gate_by_gate += gate_by_gate(operation, local_bits);
    sum.one_swap_at_a_time += one_swap_at_a_time(operation, local_bits);
    sum.lazy_swaps += lazy.cost(operation, time++);
  }
  return sum;
}

}  // namespace onehop::quantum::detail
