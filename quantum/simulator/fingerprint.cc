#include "quantum/simulator/fingerprint.h"

#include <bit>

namespace onehop::quantum {

// The sizes come first, so that the encoding is unambiguous; absent fields add nothing. This must be fast: it runs
// every time, and repeated circuits often run within microseconds.
void add_to(Fingerprint& print, const Operation& operation) {
  const Condition& condition = operation.condition;
  std::uint64_t present = 0;
  const auto mark = [&](unsigned place, bool value) { present |= static_cast<std::uint64_t>(value) << place; };
  mark(0, operation.control_values != 0);
  mark(1, !operation.values.empty() || !operation.paulis.empty());
  mark(2, std::bit_cast<std::uint64_t>(operation.angle) != 0);
  mark(3, !operation.clbits.empty() || !condition.clbits.empty());
  mark(4, condition.value != 0);
  mark(5, condition.negated);
  mark(6, !operation.angles.empty());
  mark(7, operation.index != 0);
  print.add(static_cast<std::uint64_t>(operation.kind) | present << 8 | operation.targets.size() << 16 |
            operation.controls.size() << 40);
  std::uint64_t first = 0;  // two of targets and controls in a word
  bool half = false;
  for (const auto* const qubits : {&operation.targets, &operation.controls}) {
    for (const int qubit : *qubits) {
      const auto number = static_cast<std::uint32_t>(qubit);
      if (half) print.add(first << 32 | number);
      first = number;
      half = !half;
    }
  }
  if (half) print.add(first);
  if ((present & 1U) != 0) print.add(operation.control_values);
  if ((present & 2U) != 0) {
    print.add(operation.values.size() | operation.paulis.size() << 32);
    print.add(operation.values);
    print.add(operation.paulis);
  }
  if ((present & 4U) != 0) print.add(operation.angle);
  if ((present & 8U) != 0) {
    print.add(operation.clbits.size() | condition.clbits.size() << 32);
    print.add(operation.clbits);
    print.add(condition.clbits);
  }
  if ((present & 16U) != 0) print.add(condition.value);
  if ((present & 128U) != 0) print.add(operation.index);
  for (const Expression& angle : operation.angles) {
    print.add(angle.constant);
    print.add(angle.terms.size());
    print.add(angle.terms);
  }
}

void add_to(Fingerprint& print, const Circuit& circuit) {
  for (const int number : {circuit.qubits, circuit.clbits, circuit.hidden_clbits}) print.add(number);
  print.add_all(circuit.operations);
}

void add_to(Fingerprint& print, const Channel& channel) {
  print.add(channel.operators.size());
  for (const auto& matrix : channel.operators) print.add_all(matrix);
}

void add_to(Fingerprint& print, const Save& save) {
  print.add(save.kind);
  print.add_all(save.indices);
  print.add_all(save.observables);
}

}  // namespace onehop::quantum
