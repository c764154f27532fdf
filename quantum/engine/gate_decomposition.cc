#include "quantum/engine/gate_decomposition.h"

#include <cmath>

#include "quantum/engine/decomposer.h"

namespace onehop::quantum {

Items decompose_gates(std::span<const LocalOperation> operations, int bits, int low_bits, int max_mixed, bool matrices,
                      double steepest_varying) {
  Decomposer decomposer(bits, low_bits, max_mixed, matrices, steepest_varying);
  for (std::size_t i = 0; i < operations.size(); ++i) decomposer.add(operations[i], static_cast<std::uint32_t>(i));
  return decomposer.finish();
}

bool refresh(Items& items, std::span<const LocalOperation> operations) {
  if (!items.refreshable) return false;
  for (const VaryingItems& one : items.varying) {
    const LocalOperation& op = operations[one.operation];
    Phase* const phases = items.phases.data() + one.phase;
    switch (one.form) {
      case VaryingItems::Form::phase:
        phases[0].factor = op.values.front();
        break;
      case VaryingItems::Form::parity: {
        const std::complex<double> even = even_factor(op);
        phases[0].factor = even;
        phases[1].factor = std::conj(even) / even;
        break;
      }
      case VaryingItems::Form::turn: {
        Butterfly& butterfly = items.butterflies[one.butterfly];
        butterfly.tangent = std::tan(op.angle / 2);
        if (std::abs(butterfly.tangent) > items.steepest_varying) return false;
        butterfly.cosine = cosine_of(butterfly.tangent);
        phases[0].factor = sign_of_cosine(op);
        break;
      }
    }
  }
  return true;
}

}  // namespace onehop::quantum
