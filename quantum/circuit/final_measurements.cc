#include "quantum/circuit/final_measurements.h"

#include <cstddef>

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

}  // namespace onehop::quantum
