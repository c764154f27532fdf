// Halos with random parameters, small enough to check site by site.
#pragma once

#include <cstdint>
#include <ostream>
#include <random>

#include "onehop/patterns.h"

namespace onehop {

// What GoogleTest prints beside a failure.
inline void PrintTo(const HaloSpec& spec, std::ostream* out) {
  *out << "halo of " << spec.extents.size() << " dimensions:";
  for (std::size_t d = 0; d < spec.extents.size(); ++d) {
    *out << " [extent " << spec.extents[d] << " grid " << spec.grid[d] << " widths " << spec.widths[d].first << ","
         << spec.widths[d].second << (spec.periodic[d] ? " periodic]" : " open]");
  }
  *out << (spec.corners ? " corners" : "") << " fields of";
  for (const auto bytes : spec.element_bytes) *out << ' ' << bytes;
  *out << " bytes";
}

namespace testing {

inline HaloSpec random_halo(std::mt19937& random) {
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  HaloSpec spec;
  const int dims = 1 + below(6);
  int ranks = 1;
  for (int d = 0; d < dims; ++d) {
    const int grid = ranks < 9 ? 1 + below(dims < 3 ? 4 : 3) : 1;
    ranks *= grid;
    spec.grid.push_back(grid);
    spec.extents.push_back(dims < 3 ? below(13) : below(dims < 5 ? 6 : 3) + (below(20) != 0));
    const auto width = [&] { return below(4) == 0 ? below(dims < 3 ? 8 : 3) : below(dims < 5 ? 3 : 2); };
    const auto under = width();
    spec.widths.emplace_back(under, width());
    spec.periodic.push_back(below(2) == 0);
  }
  spec.corners = below(2) == 0;
  spec.element_bytes.clear();
  for (int field = 1 + below(3); field > 0; --field) spec.element_bytes.push_back(1 + below(9));
  return spec;
}

}  // namespace testing
}  // namespace onehop
