// Reductions: combine the numbers of all ranks element by element, always in the order of ranks and in one pass.
#pragma once

#include <cstddef>

#include "onehop/collectives/collectives.h"
#include "onehop/schedule.h"

namespace onehop::collectives::detail {

// Computes result[i] = ((sources[0][i] op sources[1][i]) op sources[2][i]) ... for `elements` elements; `count` is 1 or
// more. No alignment is needed, and `result` may be one of the sources. 16-bit numbers are reduced as float32 and
// rounded once, at the end. Integers wrap around. A NaN in any source makes the result a NaN. That of a minimum or
// maximum is the first one, with its sign and payload, but quiet; of equal numbers the first counts.
using ReduceFunction = void (*)(const std::byte* const* sources, int count, std::byte* result, std::size_t elements);

// Returns the function for this processor; all give the same bits. Null if the type has no such operation: a mean of
// integers, any reduction of bytes.
[[nodiscard]] ReduceFunction reduce_function(ElementType type, ReduceOp op);

// The functions that this processor can run, for tests. The first is portable.
inline constexpr int reduce_widths = 3;
[[nodiscard]] ReduceFunction reduce_function(ElementType type, ReduceOp op, int width);
[[nodiscard]] int widest_reduce();

}  // namespace onehop::collectives::detail
