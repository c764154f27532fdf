// Simulated annealing that moves one node at a time, so that hosts are a little too full or too empty for a while;
// that costs extra, as does weight of a host beyond that of the busiest host of a reference. Far more maps are within
// reach of a move than with exchanges.
#include <algorithm>
#include <utility>

#include "machine/mapping/refine.h"

namespace onehop::detail {

namespace {

class Annealing {
 public:
  Annealing(const Graph& graph, Sizes sizes, const AnnealOptions& options, HostAt& host_at)
      : graph_(graph),
        sizes_(sizes),
        options_(options),
        host_at_(host_at),
        random_(options.seed),
        excess_(sizes.size(), 0),
        outside_(leaving(graph, sizes.size(), host_at)) {
    for (const WeightedEdge& edge : graph.edges) unit_ += edge.weight;
    unit_ = std::max<std::int64_t>(1, unit_ / std::max<std::int64_t>(1, std::ssize(graph.edges)));
    for (std::size_t host = 0; host < sizes.size(); ++host) excess_[host] = -sizes[host];
    for (std::size_t node = 0; node < host_at.size(); ++node) {
      excess_[as_index(host_at[node])] += graph.size[node];
      total_ += graph.size[node];
    }
    const std::int64_t nodes = std::ssize(host_at);
    // The cost of the first node too many is that of a mean edge.
    penalty_ = std::max<std::int64_t>(1, unit_ * nodes / total_ * nodes / total_);
    for (const std::int64_t excess : excess_) unbalanced_ += std::abs(excess);
    for (const std::int64_t weight : outside_) beyond_ += std::max<std::int64_t>(0, weight - options_.limit);
  }

  void run() {
    if (graph_.edges.empty() || excess_.size() < 2) return;
    HostAt best = host_at_;
    std::int64_t best_cost = unbalanced_ == 0 && beyond_ == 0 && !options_.forget ? 0 : INT64_MAX;
    for (std::int64_t step = 0; step < options_.steps; ++step) {
      const std::int64_t left = options_.steps - step;
      const std::int64_t temperature =
          std::max<std::int64_t>(1, unit_ * (options_.hot * left + options_.cold * step) / (100 * options_.steps));
      propose(temperature);
      if (unbalanced_ == 0 && beyond_ == 0 && cost_ < best_cost && left < options_.steps / 4) {
        best_cost = cost_;
        best = host_at_;
      }
    }
    if (std::ssize(host_at_) < total_) return;  // finer nodes will fit into the hosts
    balance();
    if (best_cost < INT64_MAX && (unbalanced_ != 0 || beyond_ != 0 || cost_ > best_cost)) host_at_ = std::move(best);
  }

 private:
  // The changes by a move: of the weight between hosts, and of the weight that leaves either host.
  struct Change {
    std::int64_t added = 0;
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  [[nodiscard]] Change change(int node, int from, int to) const {
    std::int64_t all = 0;
    std::int64_t left = 0;
    std::int64_t joined = 0;
    for (const WeightedEdge& edge : graph_.of(node)) {
      const int there = host_at_[as_index(edge.to)];
      all += edge.weight;
      left += there == from ? edge.weight : 0;
      joined += there == to ? edge.weight : 0;
    }
    return {left - joined, 2 * left - all, all - 2 * joined};
  }

  // How much more weight is beyond the limit of a host.
  [[nodiscard]] std::int64_t beyond(int host, std::int64_t change) const {
    const std::int64_t now = outside_[as_index(host)] - options_.limit;
    return std::max<std::int64_t>(0, now + change) - std::max<std::int64_t>(0, now);
  }

  void move(int node, int from, int to, const Change& change) {
    const std::int64_t size = graph_.size[as_index(node)];
    std::int64_t& a = excess_[as_index(from)];
    std::int64_t& b = excess_[as_index(to)];
    unbalanced_ += std::abs(a - size) - std::abs(a) + std::abs(b + size) - std::abs(b);
    a -= size;
    b += size;
    cost_ += change.added;
    beyond_ += beyond(from, change.from) + beyond(to, change.to);
    outside_[as_index(from)] += change.from;
    outside_[as_index(to)] += change.to;
    host_at_[as_index(node)] = to;
  }

  void propose(std::int64_t temperature) {
    const int v = static_cast<int>(random_.below(host_at_.size()));
    const std::span<const WeightedEdge> edges = graph_.of(v);
    if (edges.empty()) return;
    const int from = host_at_[as_index(v)];
    const int to = host_at_[as_index(edges[random_.below(edges.size())].to)];
    const std::int64_t size = graph_.size[as_index(v)];
    // An empty host has no neighbours.
    if (from == to || sizes_[as_index(from)] + excess_[as_index(from)] == size) return;
    const Change moved = change(v, from, to);
    const std::int64_t fuller = excess_[as_index(to)] - excess_[as_index(from)] + size;
    const std::int64_t added =
        moved.added + beyond(from, moved.from) + beyond(to, moved.to) + 2 * penalty_ * size * fuller;
    if (accepted(random_, added, temperature)) move(v, from, to, moved);
  }

  // Hands positions on along the shortest chains of hosts, from hosts that are too full to hosts that are too empty.
  void balance() {
    for (std::size_t host = 0; host < excess_.size(); ++host) {
      while (excess_[host] > 0) hand_on(static_cast<int>(host));
    }
  }

  void hand_on(int full) {
    std::vector<int> before(excess_.size(), -1);
    std::vector<int> queue{full};
    before[as_index(full)] = full;
    int empty = -1;
    for (std::size_t next = 0; next < queue.size() && empty < 0; ++next) {
      const int from = queue[next];
      for (int p = 0; p < std::ssize(host_at_); ++p) {
        if (host_at_[as_index(p)] != from) continue;
        for (const WeightedEdge& edge : graph_.of(p)) {
          const int to = host_at_[as_index(edge.to)];
          if (before[as_index(to)] >= 0) continue;
          before[as_index(to)] = from;
          queue.push_back(to);
          if (excess_[as_index(to)] < 0 && empty < 0) empty = to;
        }
      }
    }
    if (empty < 0) {  // no chain leads to one
      const auto found = std::ranges::find_if(excess_, [](std::int64_t excess) { return excess < 0; });
      hand_over(full, static_cast<int>(found - excess_.begin()));
      return;
    }
    for (int to = empty; to != full; to = before[as_index(to)]) hand_over(before[as_index(to)], to);
  }

  // Moves the position that adds least.
  void hand_over(int from, int to) {
    int best = -1;
    Change least{INT64_MAX, 0, 0};
    for (int p = 0; p < std::ssize(host_at_); ++p) {
      if (host_at_[as_index(p)] != from) continue;
      const Change moved = change(p, from, to);
      if (moved.added >= least.added) continue;
      least = moved;
      best = p;
    }
    if (best >= 0) move(best, from, to, least);
  }

  const Graph& graph_;
  Sizes sizes_;
  AnnealOptions options_;
  HostAt& host_at_;
  Random random_;
  std::vector<std::int64_t> excess_;   // positions of each host above its size
  std::int64_t unbalanced_ = 0;        // the sum of their magnitudes
  std::vector<std::int64_t> outside_;  // the weight between each host and the others
  std::int64_t beyond_ = 0;            // the sum of what is above the limit
  std::int64_t cost_ = 0;              // the weight between hosts, above that of the start
  std::int64_t total_ = 0;             // positions
  std::int64_t unit_ = 0;              // the mean weight of an edge
  std::int64_t penalty_ = 0;
};

}  // namespace

Graph graph_of(const Traffic& traffic) {
  return {traffic.begin, weigh(traffic), std::vector<std::int64_t>(as_index(traffic.positions()), 1)};
}

std::vector<std::int64_t> leaving(const Graph& graph, std::size_t hosts, const HostAt& host_at) {
  std::vector<std::int64_t> weight(hosts, 0);
  for (int p = 0; p < std::ssize(host_at); ++p) {
    const int host = host_at[as_index(p)];
    for (const WeightedEdge& edge : graph.of(p)) {
      if (host_at[as_index(edge.to)] != host) weight[as_index(host)] += edge.weight;
    }
  }
  return weight;
}

void anneal(const Graph& graph, Sizes sizes, const AnnealOptions& options, HostAt& host_at) {
  Annealing(graph, sizes, options, host_at).run();
}

}  // namespace onehop::detail
