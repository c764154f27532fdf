#include "quantum/circuit/final_measurements.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "quantum/circuit/commutation.h"

namespace onehop::quantum {

SplitCircuit split_final_measurements(const Circuit& circuit) {
  SplitCircuit result{circuit, {}};
  const auto bits = static_cast<std::size_t>(circuit.clbits) + static_cast<std::size_t>(circuit.hidden_clbits);
  std::vector<bool> used(static_cast<std::size_t>(circuit.qubits), false);  // by later operations
  std::vector<bool> bit_used(bits, false);
  for (std::size_t i = circuit.operations.size(); i-- > 0;) {
    const Operation& operation = circuit.operations[i];
    Operation& kept = result.body.operations[i];
    if (operation.kind == OperationKind::barrier) continue;
    const bool plain = operation.kind == OperationKind::measure && operation.condition.clbits.empty();
    if (plain) {
      kept.targets.clear();
      kept.clbits.clear();
      for (std::size_t t = operation.targets.size(); t-- > 0;) {
        const int qubit = operation.targets[t];
        const int bit = operation.clbits[t];
        if (used[static_cast<std::size_t>(qubit)] || bit_used[static_cast<std::size_t>(bit)]) {
          kept.targets.insert(kept.targets.begin(), qubit);
          kept.clbits.insert(kept.clbits.begin(), bit);
          used[static_cast<std::size_t>(qubit)] = true;
        } else {
          result.last.emplace_back(bit, qubit);
        }
        bit_used[static_cast<std::size_t>(bit)] = true;
      }
      if (kept.targets.empty()) kept.kind = OperationKind::barrier;
      continue;
    }
    if (operation.kind > OperationKind::channel) {  // it may need every qubit and bit
      used.assign(used.size(), true);
      bit_used.assign(bits, true);
    }
    for (const int qubit : operation.targets) used[static_cast<std::size_t>(qubit)] = true;
    for (const int qubit : operation.controls) used[static_cast<std::size_t>(qubit)] = true;
    for (const int bit : operation.clbits) bit_used[static_cast<std::size_t>(bit)] = true;
    for (const int bit : operation.condition.clbits) bit_used[static_cast<std::size_t>(bit)] = true;
  }
  return result;
}

Circuit without_fresh_resets(Circuit circuit) {
  std::vector<std::size_t> wires(static_cast<std::size_t>(circuit.qubits));  // of each qubit
  std::iota(wires.begin(), wires.end(), std::size_t{0});
  std::vector<bool> fresh(wires.size(), true);
  std::vector<std::vector<std::size_t>> before(wires.size());  // operations on each wire so far, while it is fresh
  std::vector<bool> gone(circuit.operations.size(), false);
  for (std::size_t i = 0; i < circuit.operations.size(); ++i) {
    const Operation& operation = circuit.operations[i];
    const auto wire_of = [&](int qubit) { return wires[static_cast<std::size_t>(qubit)]; };
    if (operation.kind == OperationKind::barrier) continue;
    if (detail::is_plain_swap(operation)) {
      std::swap(wires[static_cast<std::size_t>(operation.targets[0])],
                wires[static_cast<std::size_t>(operation.targets[1])]);
      continue;
    }
    const auto is_fresh = [&](int qubit) { return fresh[wire_of(qubit)]; };
    const bool absorbed = detail::is_independent(operation) && std::ranges::all_of(operation.targets, is_fresh);
    gone[i] = absorbed && operation.kind == OperationKind::reset;
    for (const int target : operation.targets) {
      std::vector<std::size_t>& gates = before[wire_of(target)];
      if (gone[i]) {
        for (const std::size_t gate : gates) gone[gate] = true;
        gates.clear();
      } else if (absorbed) {
        gates.push_back(i);
      } else {
        fresh[wire_of(target)] = false;
      }
    }
    for (const int control : operation.controls) fresh[wire_of(control)] = false;
  }
  std::vector<Operation> kept;
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) kept.push_back(std::move(circuit.operations[i]));
  }
  circuit.operations = std::move(kept);
  return circuit;
}

}  // namespace onehop::quantum
