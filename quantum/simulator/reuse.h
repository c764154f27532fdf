// Lets the qubits of a part share places in its state: a qubit that has been reset, or measured for the last time,
// leaves the state, and a qubit that is used later takes its place.
#pragma once

#include <vector>

#include "quantum/simulator/storage.h"

namespace onehop::quantum {

enum class Leaving : std::uint8_t {
  // Qubits leave after resets and measurements that draw outcomes in any case. Outcomes are drawn in the same order.
  drawn,
  // Operations come in an order in which few qubits are in the state at once. Qubits that are measured at the end are
  // measured as soon as nothing else happens to them; those that are not measured are reset.
  early,
};

// The part with fewer qubits, if it can have fewer. `stays`: for each of its qubits, whether it must be in the state at
// the end. The operations must be gates, measurements, resets and assignments.
[[nodiscard]] StoredPart with_reuse(StoredPart part, std::vector<bool> stays, Leaving leaving);

}  // namespace onehop::quantum
