// A lower bound of the bytes between hosts on a grid.
#pragma once

#include <cstdint>
#include <optional>

#include "machine/mapping/published.h"

namespace onehop::detail {

// Sums the least surface of every host, and subtracts the rim of the grid, which no bytes cross. Nothing is returned
// where only a poor bound is known: for large hosts on grids that are periodic and short.
[[nodiscard]] std::optional<std::int64_t> surface_bound(const GridShape& shape, Sizes sizes);

}  // namespace onehop::detail
