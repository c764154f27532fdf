// Reduces: the numbers of all ranks combined element by element, always in the order of ranks and in one pass.
#pragma once

#include <cstddef>

#include "onehop/collectives/collectives.h"
#include "onehop/schedule.h"

namespace onehop::collectives::detail {

// result[i] = ((sources[0][i] op sources[1][i]) op sources[2][i]) ..., for `elements` elements; `count` is 1 or more.
// Nothing need be aligned, and `result` may be one of the sources. 16-bit numbers are calculated with as float32 and
// rounded once, at the end; integers wrap round; a NaN in any source is one in the result.
using ReduceFunction = void (*)(const std::byte* const* sources, int count, std::byte* result, std::size_t elements);

// The function for this processor; the same bits on every processor. Null if the operation makes no sense for the type:
// a mean of integers, anything of bytes.
[[nodiscard]] ReduceFunction reduce_function(ElementType type, ReduceOp op);

// All that this processor can run, for tests: the first is portable.
inline constexpr int reduce_widths = 3;
[[nodiscard]] ReduceFunction reduce_function(ElementType type, ReduceOp op, int width);
[[nodiscard]] int widest_reduce();

}  // namespace onehop::collectives::detail
