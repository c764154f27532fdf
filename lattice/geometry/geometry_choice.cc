// Chooses the grid of ranks and the number of lanes for a lattice.
#include <bit>
#include <limits>
#include <vector>

#include "lattice/geometry/geometry_check.h"
#include "onehop/lattice/geometry.h"
#include "src/base/text.h"

namespace onehop::lattice {

namespace detail {

void check_extents(std::span<const std::int64_t> extents) {
  if (extents.empty() || extents.size() > 4) complain("expected 1 to 4 extents, found " + text(extents.size()));
  std::int64_t sites = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 1) complain("expected extents of 1 or more, found " + joined(extents));
    if (extent > (std::int64_t{1} << 40) / sites) complain("expected at most 2^40 sites, found " + joined(extents));
    sites *= extent;
  }
}

}  // namespace detail

using detail::check_extents;
using detail::complain;
using detail::joined;
using detail::text;
using detail::thinnest;

namespace {

// Visits all grids of `ranks` ranks, those with large factors in the last directions first.
void each_grid(int ranks, std::vector<int>& grid, std::size_t direction, const auto& visit) {
  if (direction == 0) {
    grid[0] = ranks;
    visit(grid);
    return;
  }
  for (int factor = ranks; factor >= 1; --factor) {
    if (ranks % factor != 0) continue;
    grid[direction] = factor;
    each_grid(ranks / factor, grid, direction - 1, visit);
  }
}

}  // namespace

std::vector<int> geometry_grid(std::span<const std::int64_t> extents, int ranks, int width) {
  check_extents(extents);
  if (ranks < 1) complain("expected 1 rank or more, found " + text(ranks));
  if (width < 1) complain("expected a width of 1 or more, found " + text(width));
  std::vector<int> grid(extents.size(), 1);
  std::vector<int> best;
  double least = std::numeric_limits<double>::infinity();
  each_grid(ranks, grid, extents.size() - 1, [&](const std::vector<int>& candidate) {
    double surface = 0;  // of a block, per site of it
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (candidate[d] == 1) continue;
      if (extents[d] % candidate[d] != 0 || extents[d] / candidate[d] < thinnest(width)) return;
      surface += static_cast<double>(candidate[d]) / static_cast<double>(extents[d]);
    }
    if (surface >= least * (1 - 1e-12)) return;
    least = surface;
    best = candidate;
  });
  if (best.empty()) {
    complain("expected a lattice that " + base::counted(ranks, "rank") + " can cut into equal blocks of at least " +
             base::counted(thinnest(width), "site") + " per direction that is cut, found " + joined(extents) +
             "; take another number of ranks or another lattice");
  }
  return best;
}

int geometry_lanes(GeometrySpec spec, int max_lanes) {
  if (max_lanes < 1) complain("expected a largest number of lanes of 1 or more, found " + text(max_lanes));
  spec.lanes = 1;
  (void)Geometry(spec);  // throws if anything but the lanes is wrong
  int lanes = std::min(detail::max_lanes, static_cast<int>(std::bit_floor(static_cast<unsigned>(max_lanes))));
  for (; lanes > 1; lanes /= 2) {
    spec.lanes = lanes;
    try {
      (void)Geometry(spec);
      break;
    } catch (const BadInput&) {
      continue;
    }
  }
  return lanes;
}

}  // namespace onehop::lattice
