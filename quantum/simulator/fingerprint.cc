#include "quantum/simulator/fingerprint.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "onehop/error.h"
#include "src/base/one_size.h"

namespace onehop::quantum {

// The sizes come first, so that the encoding is unambiguous; absent fields add nothing. This must be fast: it runs
// every time, and repeated circuits often run within microseconds.
void Fingerprint::add(const Operation& operation) {
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
  add(static_cast<std::uint64_t>(operation.kind) | present << 8 | operation.targets.size() << 16 |
      operation.controls.size() << 40);
  std::uint64_t first = 0;  // two of targets and controls in a word
  bool half = false;
  for (const auto* const qubits : {&operation.targets, &operation.controls}) {
    for (const int qubit : *qubits) {
      const auto number = static_cast<std::uint32_t>(qubit);
      if (half) add(first << 32 | number);
      first = number;
      half = !half;
    }
  }
  if (half) add(first);
  if ((present & 1U) != 0) add(operation.control_values);
  if ((present & 2U) != 0) {
    add(operation.values.size() | operation.paulis.size() << 32);
    add(operation.values);
    for (const char pauli : operation.paulis) add(static_cast<std::uint64_t>(static_cast<unsigned char>(pauli)));
  }
  if ((present & 4U) != 0) add(operation.angle);
  if ((present & 8U) != 0) {
    add(operation.clbits.size() | condition.clbits.size() << 32);
    add(operation.clbits);
    add(condition.clbits);
  }
  if ((present & 16U) != 0) add(condition.value);
  if ((present & 128U) != 0) add(operation.index);
  for (const Expression& angle : operation.angles) {
    add(angle.constant);
    add(angle.terms.size());
    for (const auto& [parameter, factor] : angle.terms) {
      add(parameter);
      add(factor);
    }
  }
}

void Fingerprint::add(const PauliSum& sum) {
  add(static_cast<std::uint64_t>(sum.terms.size()));
  for (const PauliTerm& term : sum.terms) {
    add(term.coefficient);
    add(static_cast<std::uint64_t>(term.paulis.size()));
    for (const auto& [qubit, pauli] : term.paulis) {
      add(static_cast<std::uint64_t>(qubit) << 8 | static_cast<unsigned char>(pauli));
    }
  }
}

void Fingerprint::add(const Save& save) {
  add(static_cast<int>(save.kind));
  add_all(save.indices);
  add_all(save.observables);
}

void require_same(const Group& group, std::span<const Shared> contents) {
  if (group.size() == 1) return;
  std::vector<Key> mine;
  for (const Shared& one : contents) mine.push_back(one.hash);
  const auto bytes = std::as_bytes(std::span(mine));
  const Gathered all = base::of_one_size(group.allgather(bytes), bytes.size());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const auto different = std::ranges::mismatch(all[rank], all[0]).in1 - all[rank].begin();
    if (different == std::ssize(all[rank])) continue;
    throw Mismatch("expected the same " +
                   std::string(contents[static_cast<std::size_t>(different) / sizeof(Key)].name) +
                   " on every rank, found another one on rank " + std::to_string(rank) +
                   " than on rank 0; random numbers in a program need a seed that all ranks share");
  }
}

}  // namespace onehop::quantum
