// The engine on amplitudes that are kept encoded.
#pragma once

#include <span>
#include <vector>

#include "onehop/quantum/engine.h"
#include "quantum/engine/encoded_amplitudes.h"

namespace onehop::quantum {

// As `apply`, in single precision: every pass decodes a tile, works on it, and encodes it again. Throws BadInput also
// for matrices on more bits than a tile holds.
EngineCounters apply_encoded(EncodedAmplitudes& amplitudes, std::span<const LocalOperation> operations,
                             const EngineOptions& options);

// Adds a rotation about a string with X on too many bits for a tile, or with controls and Z on many bits: as a rotation
// about a shorter string between two rows of controlled X.
void add_narrowed(std::vector<LocalOperation>& list, LocalOperation op);

}  // namespace onehop::quantum
