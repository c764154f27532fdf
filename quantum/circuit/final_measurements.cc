#include "quantum/circuit/final_measurements.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "quantum/circuit/commutation.h"

namespace onehop::quantum {
namespace {

// Takes known bits out of a condition. Returns whether it holds if it depends on no others, -1 if it does.
int settle(Condition& condition, const std::vector<std::int8_t>& known) {
  Condition rest{{}, 0, condition.negated};
  for (std::size_t k = 0; k < condition.clbits.size(); ++k) {
    const int bit = condition.clbits[k];
    const std::uint64_t wanted = k < 64 ? condition.value >> k & 1U : 0;  // as Condition::holds
    const std::int8_t value = known[static_cast<std::size_t>(bit)];
    if (value >= 0 && static_cast<std::uint64_t>(value) != wanted) return condition.negated ? 1 : 0;
    if (value >= 0) continue;
    if (wanted != 0) rest.value |= wanted << rest.clbits.size();
    rest.clbits.push_back(bit);
  }
  if (rest.clbits.empty()) return condition.negated && !condition.clbits.empty() ? 0 : 1;
  condition = std::move(rest);
  return -1;
}

// Settles conditions on bits that no measurement has set: operations that are never done become barriers. The shots of
// a seed then do not depend on how such a branch is written.
void settle_conditions(Circuit& circuit) {
  if (circuit.has_jumps()) return;
  std::vector<std::int8_t> known(static_cast<std::size_t>(circuit.clbits + circuit.hidden_clbits), 0);  // -1: measured
  for (Operation& operation : circuit.operations) {
    if (operation.kind > OperationKind::assign) {
      for (const int bit : operation.clbits) known[static_cast<std::size_t>(bit)] = -1;
      continue;
    }
    const int holds = settle(operation.condition, known);
    const bool assigns = operation.kind == OperationKind::assign;
    const bool idle =
        assigns ? holds >= 0 && holds == known[static_cast<std::size_t>(operation.clbits[0])] : holds == 0;
    if (idle) operation = Operation();
    if (holds == 1) operation.condition = {};
    for (const int bit : operation.clbits) {
      known[static_cast<std::size_t>(bit)] = assigns ? static_cast<std::int8_t>(holds) : std::int8_t{-1};
    }
  }
}

}  // namespace

SplitCircuit split_final_measurements(const Circuit& circuit) {
  SplitCircuit result{circuit, {}};
  settle_conditions(result.body);
  const auto bits = static_cast<std::size_t>(circuit.clbits) + static_cast<std::size_t>(circuit.hidden_clbits);
  std::vector<bool> used(static_cast<std::size_t>(circuit.qubits), false);  // by later operations
  std::vector<bool> bit_used(bits, false);
  for (std::size_t i = circuit.operations.size(); i-- > 0;) {
    Operation& operation = result.body.operations[i];
    const bool hidden = operation.kind == OperationKind::assign && operation.clbits[0] >= circuit.clbits;
    if (hidden && !bit_used[static_cast<std::size_t>(operation.clbits[0])]) operation = Operation();  // nobody reads it
    if (operation.kind == OperationKind::barrier) continue;
    const bool plain = operation.kind == OperationKind::measure && operation.condition.clbits.empty();
    if (plain) {
      const std::vector<int> targets = std::exchange(operation.targets, {});
      const std::vector<int> clbits = std::exchange(operation.clbits, {});
      for (std::size_t t = targets.size(); t-- > 0;) {
        const int qubit = targets[t];
        const int bit = clbits[t];
        if (used[static_cast<std::size_t>(qubit)] || bit_used[static_cast<std::size_t>(bit)]) {
          operation.targets.insert(operation.targets.begin(), qubit);
          operation.clbits.insert(operation.clbits.begin(), bit);
          used[static_cast<std::size_t>(qubit)] = true;
        } else {
          result.last.emplace_back(bit, qubit);
        }
        bit_used[static_cast<std::size_t>(bit)] = true;
      }
      if (operation.targets.empty()) operation.kind = OperationKind::barrier;
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
