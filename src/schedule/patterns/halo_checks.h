// Checks of what a caller asks of a halo exchange.
#pragma once

#include <cstddef>
#include <vector>

#include "onehop/patterns.h"

namespace onehop {

inline constexpr std::size_t max_halo_dims = 6;

// Checks all but the positions of the ranks, and returns the number of ranks. Throws BadInput if a length differs from
// the number of dimensions, a value is out of range, or the codec does not take a type.
[[nodiscard]] int check_halo(const HaloSpec& spec);

// Returns the position of each rank in the grid, given the rank at each of `size` positions. Throws BadInput unless
// that is a permutation.
[[nodiscard]] std::vector<int> halo_positions(const std::vector<int>& permutation, int size);

}  // namespace onehop
