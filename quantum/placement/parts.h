// The parts of a stage.
#pragma once

#include <cstddef>

namespace onehop::quantum {

// The most operations of a stage that an engine takes at once: those of a Fourier transform of any state, which is
// enough for few passes; fewer make progress visible.
inline constexpr std::size_t most_together = 2048;

}  // namespace onehop::quantum
