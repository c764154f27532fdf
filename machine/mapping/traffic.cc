#include "machine/mapping/traffic.h"

#include <algorithm>

#include "machine/mapping/grid_shape.h"
#include "src/base/checked.h"
#include "src/base/memory_left.h"

namespace onehop::detail {

// What a map takes for each position and for each of its edges, with the search.
constexpr double position_bytes = 100;
constexpr double edge_bytes = 24;

Traffic traffic_of(const Grid& grid) {
  const GridShape shape(grid);
  const auto positions = as_index(shape.positions());
  const double position = position_bytes + edge_bytes * 2 * static_cast<double>(shape.dims());
  check_room("map", static_cast<double>(positions), "positions", position);
  Traffic traffic;
  traffic.begin.reserve(positions + 1);
  traffic.edges.reserve(positions * shape.dims() * 2);
  std::vector<std::int64_t> at(shape.dims(), 0);
  for (std::size_t p = 0; p < positions; ++p) {
    traffic.begin.push_back(traffic.edges.size());
    for (std::size_t d = 0; d < shape.dims(); ++d) {
      const std::int64_t extent = shape.extents()[d];
      if (extent == 1) continue;
      const std::int64_t stride = shape.strides()[d];
      const std::int64_t bytes = shape.bytes()[d];
      const auto here = static_cast<std::int64_t>(p);
      const auto add = [&](std::int64_t to) { traffic.edges.push_back({static_cast<int>(to), 1, bytes, 2 * bytes}); };
      if (at[d] > 0) {
        add(here - stride);
      } else if (shape.periodic(d)) {
        add(here + (extent - 1) * stride);
      }
      if (at[d] + 1 < extent) {
        add(here + stride);
      } else if (shape.periodic(d)) {
        add(here - (extent - 1) * stride);
      }
    }
    shape.advance(at);
  }
  traffic.begin.push_back(traffic.edges.size());
  return traffic;
}

Traffic traffic_of(int positions, std::span<const PairCount> pairs) {
  struct Entry {
    int at = 0;
    TrafficEdge edge;
  };
  const auto number = static_cast<double>(pairs.size());
  check_room("map", number, "pairs of ranks", position_bytes + 2 * (sizeof(Entry) + edge_bytes));
  std::vector<Entry> entries;
  entries.reserve(pairs.size() * 2);
  std::int64_t total = 0;
  for (const PairCount& pair : pairs) {
    if (pair.from < 0 || pair.from >= positions || pair.to < 0 || pair.to >= positions) {
      throw BadInput("map: expected pairs of ranks from 0 to " + std::to_string(positions - 1) + ", found " +
                     std::to_string(pair.from) + " -> " + std::to_string(pair.to));
    }
    if (pair.bytes < 0) throw BadInput("map: expected pairs with 0 bytes or more, found " + std::to_string(pair.bytes));
    if (pair.from == pair.to) continue;
    total = checked_add(total, pair.bytes, "the bytes between all pairs");
    entries.push_back({pair.from, {pair.to, 1, pair.bytes, pair.bytes}});
    entries.push_back({pair.to, {pair.from, 0, 0, pair.bytes}});
  }
  (void)checked_multiply(total, 4, "4 times the bytes between all pairs");
  std::ranges::stable_sort(
      entries, [](const Entry& a, const Entry& b) { return a.at != b.at ? a.at < b.at : a.edge.to < b.edge.to; });
  Traffic traffic;
  traffic.begin.assign(as_index(positions) + 1, 0);
  int last = -1;
  for (const Entry& entry : entries) {
    if (entry.at == last && traffic.edges.back().to == entry.edge.to) {
      TrafficEdge& edge = traffic.edges.back();
      edge.messages += entry.edge.messages;
      edge.sent += entry.edge.sent;
      edge.both += entry.edge.both;
    } else {
      traffic.edges.push_back(entry.edge);
      last = entry.at;
    }
    traffic.begin[as_index(entry.at) + 1] = traffic.edges.size();
  }
  for (std::size_t p = 1; p < traffic.begin.size(); ++p) {
    traffic.begin[p] = std::max(traffic.begin[p], traffic.begin[p - 1]);
  }
  return traffic;
}

MapCost cost_of(const Traffic& traffic, const HostDistance& distance, std::span<const int> host_at) {
  struct Load {
    std::int64_t edges_out = 0, edges_in = 0, bytes_out = 0, bytes_in = 0;
  };
  std::vector<Load> loads(as_index(distance.hosts()));
  MapCost cost;
  cost.bytes_by_level.assign(as_index(distance.levels()), 0);
  for (int p = 0; p < traffic.positions(); ++p) {
    const int from = host_at[as_index(p)];
    for (const TrafficEdge& edge : traffic.of(p)) {
      const int to = host_at[as_index(edge.to)];
      if (to == from) {
        cost.bytes_by_level[0] += edge.sent;
        continue;
      }
      cost.bytes_by_level[as_index(distance.level(from, to))] += edge.sent;
      cost.edges_between_hosts += edge.messages;
      cost.bytes_between_hosts += edge.sent;
      cost.weighted_bytes += edge.sent * distance.cost(from, to);
      if (distance.has_torus()) cost.byte_hops += edge.sent * distance.hops(from, to);
      loads[as_index(from)].edges_out += edge.messages;
      loads[as_index(from)].bytes_out += edge.sent;
      loads[as_index(to)].edges_in += edge.messages;
      loads[as_index(to)].bytes_in += edge.sent;
    }
  }
  for (const Load& load : loads) {
    cost.busiest_host_edges = std::max({cost.busiest_host_edges, load.edges_out, load.edges_in});
    cost.busiest_host_bytes = std::max({cost.busiest_host_bytes, load.bytes_out, load.bytes_in});
  }
  return cost;
}

}  // namespace onehop::detail
