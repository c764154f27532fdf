// What other rules would move: the rule of a simulator that keeps qubit i on bit i.
#pragma once

#include "onehop/quantum/placement.h"

namespace onehop::quantum::detail {

[[nodiscard]] Baselines baselines_of(const Circuit& circuit, int local_bits);

}  // namespace onehop::quantum::detail
