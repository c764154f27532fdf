// The traffic between positions as a graph, and what an assignment of positions to hosts costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "machine/mapping/host_distance.h"
#include "onehop/machine/mapping.h"

namespace onehop::detail {

// A number that is known not to be negative, as an index.
[[nodiscard]] constexpr std::size_t as_index(std::int64_t number) { return static_cast<std::size_t>(number); }

// One neighbour of a position.
struct TrafficEdge {
  int to = 0;
  int messages = 0;       // edges from the position to `to`
  std::int64_t sent = 0;  // bytes from the position to `to`
  std::int64_t both = 0;  // bytes in both directions
};

// Every pair with traffic appears in the lists of both its positions.
struct Traffic {
  std::vector<std::size_t> begin;  // the edges of position p are begin[p] .. begin[p + 1]
  std::vector<TrafficEdge> edges;

  [[nodiscard]] int positions() const { return static_cast<int>(begin.size()) - 1; }
  [[nodiscard]] std::span<const TrafficEdge> of(int position) const {
    const auto p = static_cast<std::size_t>(position);
    return std::span(edges).subspan(begin[p], begin[p + 1] - begin[p]);
  }
};

[[nodiscard]] Traffic traffic_of(const Grid& grid);
[[nodiscard]] Traffic traffic_of(int positions, std::span<const PairCount> pairs);

[[nodiscard]] MapCost cost_of(const Traffic& traffic, const HostDistance& distance, std::span<const int> host_at);

}  // namespace onehop::detail
