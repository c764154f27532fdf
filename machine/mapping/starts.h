// Where the local search starts, besides the published maps.
#pragma once

#include <vector>

#include "machine/mapping/published.h"
#include "machine/mapping/traffic.h"

namespace onehop::detail {

// The best maps of strips of other heights and along other dimensions, the best one first; at most `most`.
[[nodiscard]] std::vector<HostAt> other_strips(const GridShape& shape, Sizes sizes, const Traffic& traffic,
                                               const HostDistance& distance, std::size_t most);

// Cuts the grid in two, again and again, each time along the longest dimension of what is left and anywhere in a layer,
// so that both parts hold whole hosts of any size.
[[nodiscard]] HostAt bisection(const GridShape& shape, Sizes sizes);

// For traffic that is no grid: fills one host after the other with the positions that exchange most with those in it.
[[nodiscard]] HostAt grow(const Traffic& traffic, Sizes sizes);

}  // namespace onehop::detail
