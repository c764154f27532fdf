// The common parts of the local searches: edges with weights in one scale, and the rule that accepts a change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "machine/mapping/random.h"
#include "machine/mapping/traffic.h"

namespace onehop::detail {

constexpr std::int64_t unit_weight = 1024;  // the mean weight of an edge

struct WeightedEdge {
  int to = 0;
  std::int64_t weight = 0;
};

// The edges of `traffic` in units of 1/1024 of their mean, so that one schedule of temperatures suits all.
[[nodiscard]] inline std::vector<WeightedEdge> weigh(const Traffic& traffic) {
  __extension__ using Wide = __int128;
  constexpr std::int64_t heaviest = std::int64_t{1} << 40;
  std::int64_t total = 0;
  for (const TrafficEdge& edge : traffic.edges) total += edge.both;
  const std::int64_t mean = std::max<std::int64_t>(1, total / std::max<std::int64_t>(1, std::ssize(traffic.edges)));
  std::vector<WeightedEdge> edges;
  edges.reserve(traffic.edges.size());
  for (const TrafficEdge& edge : traffic.edges) {
    const auto weight = static_cast<Wide>(edge.both) * unit_weight / mean;
    edges.push_back({edge.to, static_cast<std::int64_t>(std::min<Wide>(weight, heaviest))});
  }
  return edges;
}

// Whether simulated annealing accepts a change that raises the cost by `added`: with probability
// 2^(-added / temperature), interpolated linearly between powers of 2. The temperature is above 0.
[[nodiscard]] inline bool accepted(Random& random, std::int64_t added, std::int64_t temperature) {
  if (added <= 0) return true;
  const std::int64_t quarters = added > 20 * temperature ? std::int64_t{20} * 256 : added * 256 / temperature;
  const auto chance =
      ((std::uint64_t{1} << 32) - (static_cast<std::uint64_t>(quarters & 255) << 23)) >> (quarters >> 8);
  return (random.next() >> 32) < chance;
}

}  // namespace onehop::detail
