// A lower bound of the bytes between hosts for small hosts, tighter than the surface bound and slower.
#pragma once

#include <cstdint>
#include <optional>

#include "machine/mapping/published.h"

namespace onehop::detail {

// Returns a lower bound: no map of the grid to hosts of these sizes has fewer bytes between hosts. The search for a
// tight bound stops at `target`. Returns nothing if the tables would be too large (hosts of many hundred positions).
// The result depends on the arguments only.
[[nodiscard]] std::optional<std::int64_t> slice_bound(const GridShape& shape, Sizes sizes, std::int64_t target);

}  // namespace onehop::detail
