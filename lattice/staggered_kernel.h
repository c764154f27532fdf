// The inner loop of the staggered hopping term.
#pragma once

#include <cstdint>

#include "onehop/lattice/geometry.h"

namespace onehop::lattice::detail {

// Of vectors [first, last): out = sum over the 2 * dims neighbours of link * field. Links lie as [vector][neighbour][row][column][re, im][lane],
// fields as [vector][colour][re, im][lane].
struct HopRange {
  const double* links = nullptr;
  const Geometry::Neighbour* neighbours = nullptr;  // of vector 0 on: 2 * dims each
  const int* lane_sources = nullptr;                // [neighbour][lane]
  const double* field = nullptr;
  double* out = nullptr;
  int dims = 4;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

using HopKernel = void (*)(const HopRange&);

// For so many lanes (1, 2, 4 or 8), the best that this processor has.
[[nodiscard]] HopKernel hop_kernel(int lanes);

}  // namespace onehop::lattice::detail
