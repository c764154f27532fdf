// The communication volume of simpler strategies, for comparison: simulators that keep qubit i on bit i, or swap on
// demand.
#pragma once

#include "onehop/quantum/placement.h"

namespace onehop::quantum::detail {

[[nodiscard]] Baselines baselines_of(const Circuit& circuit, int local_bits);

}  // namespace onehop::quantum::detail
