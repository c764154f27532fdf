// Divides a circuit into a body, which runs on the state, and final measurements, which are sampled from the state that
// the body leaves.
#pragma once

#include <utility>
#include <vector>

#include "onehop/quantum/circuit.h"

namespace onehop::quantum {

struct SplitCircuit {
  Circuit body;  // the circuit's operations in their places; a barrier stands for an operation of final measurements
  std::vector<std::pair<int, int>> last;  // (classical bit, qubit)
};

// A measurement is final if no operation uses its qubit or its classical bit afterwards, and no condition guards it.
// Conditions on bits that nothing has measured are settled: operations that are never done become barriers.
[[nodiscard]] SplitCircuit split_final_measurements(const Circuit& circuit);

// The circuit without resets that draw nothing, because only gates that become a part of the first state come before
// them, and without these gates.
[[nodiscard]] Circuit without_fresh_resets(Circuit circuit);

}  // namespace onehop::quantum
