// The engine on amplitudes that are kept encoded.
#pragma once

#include <span>

#include "onehop/quantum/engine.h"
#include "quantum/engine/encoded_amplitudes.h"

namespace onehop::quantum {

// As `apply`, in single precision: every pass decodes a tile, works on it, and encodes it again. Throws BadInput also
// for matrices on more bits than a tile holds.
EngineCounters apply_encoded(EncodedAmplitudes& amplitudes, std::span<const LocalOperation> operations,
                             const EngineOptions& options);

}  // namespace onehop::quantum
