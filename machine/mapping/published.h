// The published maps of grids, all from the shape of the grid and the sizes of the hosts alone. Each returns the host
// of every position, or nothing where the algorithm has no answer.
//
// Hyperplane, k-d tree and strips: Hunold, von Kirchbach, Lehr, Schulz and Traeff, "Efficient process-to-node mapping
// algorithms for stencil computations", arXiv 2005.09521. Best box: Gropp, "Using node and socket information to
// implement MPI Cartesian topologies", Parallel Computing 85 (2019).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "machine/mapping/grid_shape.h"
#include "machine/mapping/traffic.h"

namespace onehop::detail {

using HostAt = std::vector<int>;
using Sizes = std::span<const std::int64_t>;

// Host 0 takes the first sizes[0] positions of `order`, host 1 the next ones, and so on.
[[nodiscard]] HostAt fill_hosts(std::span<const int> order, Sizes sizes);

// Boxes of the hosts' sizes that tile the grid with the least bytes between them.
[[nodiscard]] std::optional<HostAt> best_box(const GridShape& shape, Sizes sizes);
// The edges of all boxes of `volume` positions that tile the grid with the least bytes between them, and among these
// the least of one box.
[[nodiscard]] std::vector<std::vector<std::int64_t>> best_edges(const GridShape& shape, std::int64_t volume);
// Such boxes on hosts that fill a torus: neighbours, periodic ones too, are few hops apart.
[[nodiscard]] std::optional<HostAt> folded_boxes(const GridShape& shape, Sizes sizes,
                                                 std::span<const std::int64_t> torus);
// Boxes for hosts of unequal sizes: the grid is cut in two again and again, by planes that leave both parts a whole
// number of hosts.
[[nodiscard]] std::optional<HostAt> unequal_boxes(const GridShape& shape, Sizes sizes);

[[nodiscard]] HostAt hyperplane(const GridShape& shape, Sizes sizes);
[[nodiscard]] HostAt kd_tree(const GridShape& shape, Sizes sizes);
[[nodiscard]] HostAt strips(const GridShape& shape, Sizes sizes);

// The order in which strips along the dimension `run` visit the positions. heights[d] is the least height of a strip in
// dimension d; where it does not divide the extent, the first strips are one higher, or more.
[[nodiscard]] std::vector<int> strip_order(const GridShape& shape, std::size_t run,
                                           std::span<const std::int64_t> heights);
// Ideal edges of a box of `volume` positions over the dimensions `dims`, rounded down: proportional to the bytes of a
// message in each dimension.
[[nodiscard]] std::int64_t ideal_edge(const GridShape& shape, std::span<const std::size_t> dims, std::size_t d,
                                      std::int64_t volume);

// Where the local search starts, besides the published maps.

// The best maps of strips of other heights and along other dimensions, the best one first; at most `most`.
[[nodiscard]] std::vector<HostAt> other_strips(const GridShape& shape, Sizes sizes, const Traffic& traffic,
                                               const HostDistance& distance, std::size_t most);

// Cuts the grid in two, again and again, each time along the longest dimension of what is left and anywhere in a layer,
// so that both parts hold whole hosts of any size.
[[nodiscard]] HostAt bisection(const GridShape& shape, Sizes sizes);

// For traffic that is no grid: fills one host after the other with the positions that exchange most with those in it.
[[nodiscard]] HostAt grow(const Traffic& traffic, Sizes sizes);

// A lower bound of the bytes between hosts on a grid.

// Sums the least surface of every host, and subtracts the rim of the grid, which no bytes cross. Nothing is returned
// where only a poor bound is known: for large hosts on grids that are periodic and short.
[[nodiscard]] std::optional<std::int64_t> surface_bound(const GridShape& shape, Sizes sizes);

}  // namespace onehop::detail
