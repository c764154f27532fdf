// Local search: exchanges positions between hosts to reduce the bytes between hosts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "machine/mapping/published.h"
#include "machine/mapping/traffic.h"

namespace onehop::detail {

struct RefineOptions {
  std::uint64_t seed = 1;
  std::int64_t steps = 0;  // exchanges to propose
  bool anneal = true;      // accept some exchanges that cost more, fewer and fewer of them
};

// Every host keeps its number of positions. The result depends on the arguments only: there is no clock in it, and no
// floating-point number. It may cost more than the start if `anneal` is set; compare.
void refine(const Traffic& traffic, const HostDistance& distance, const RefineOptions& options, HostAt& host_at);

// Renumbers hosts of equal sizes among each other to reduce the weighted bytes, then the hops on the torus.
void arrange(const Traffic& traffic, const HostDistance& distance, Sizes sizes, HostAt& host_at);

// A small generator of random numbers (SplitMix64), the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  [[nodiscard]] std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }
  // A number from 0 to limit - 1; limit < 2^32.
  [[nodiscard]] std::size_t below(std::size_t limit) noexcept {
    return static_cast<std::size_t>(((next() >> 32) * static_cast<std::uint64_t>(limit)) >> 32);
  }

 private:
  std::uint64_t state_;
};

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

// Positions joined to nodes, each of one host.
struct Graph {
  std::vector<std::size_t> begin;  // the edges of node v are begin[v] .. begin[v + 1]
  std::vector<WeightedEdge> edges;
  std::vector<std::int64_t> size;  // positions of each node

  [[nodiscard]] std::span<const WeightedEdge> of(int node) const {
    return std::span(edges).subspan(begin[as_index(node)], begin[as_index(node) + 1] - begin[as_index(node)]);
  }
};
[[nodiscard]] Graph graph_of(const Traffic& traffic);

// The weight between each host and the others.
[[nodiscard]] std::vector<std::int64_t> leaving(const Graph& graph, std::size_t hosts, const HostAt& host_at);

struct AnnealOptions {
  static constexpr std::int64_t no_limit = INT64_MAX / 4;

  std::uint64_t seed = 1;
  std::int64_t steps = 0;
  std::int64_t limit = no_limit;  // of the weight that leaves one host; more costs extra
  std::int64_t hot = 60;  // temperatures at the start and at the end, in hundredths of the mean weight of an edge
  std::int64_t cold = 20;
  bool forget = false;  // the start may be lost
};

// Simulated annealing by moves of single nodes, for hosts that are equally far from each other. Hosts have their sizes
// again at the end if every node is one position.
void anneal(const Graph& graph, Sizes sizes, const AnnealOptions& options, HostAt& host_at);

// Joins neighbours to nodes, again and again, and anneals the graphs from the coarsest to `graph`. Without `forget`
// only neighbours on one host are joined, so that the start is a map of every graph.
void v_cycle(const Graph& graph, Sizes sizes, const AnnealOptions& options, HostAt& host_at);

}  // namespace onehop::detail
