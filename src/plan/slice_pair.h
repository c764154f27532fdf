// Two copies in one loop. The two faces of a periodic dimension lie in the same cache lines if that dimension runs
// fastest: what one copy reads shares a line with what the other one writes.
#pragma once

#include "src/plan/slice_copy.h"

namespace onehop::detail {

// Whether copy_pair can handle two copies: short runs in lines of their own, in slices of one shape.
[[nodiscard]] bool are_pair(const CopyStep& to, const CopyStep& from, const CopyStep& other_to,
                            const CopyStep& other_from) noexcept;
// The same as copy_between(to, from) and copy_between(other_to, other_from).
void copy_pair(const CopyStep& to, const CopyStep& from, const CopyStep& other_to, const CopyStep& other_from) noexcept;

}  // namespace onehop::detail
