// A V-cycle: the graph is made coarser by joining neighbours, and the hosts of the coarse nodes are annealed at every
// size, the coarsest first.
#include <algorithm>
#include <numeric>
#include <utility>

#include "machine/mapping/refine.h"

namespace onehop::detail {

namespace {

// A graph with pairs of neighbours joined: `into[v]` is the node that has taken up v.
struct Coarser {
  Graph graph;
  std::vector<int> into;
};

// Finds a neighbour for every node, and merges the edges of both. Joins nodes of at most `most` positions together, and
// of one host only if `apart` is set.
class Coarsening {
 public:
  Coarsening(const Graph& graph, const HostAt& host_at, bool apart, std::int64_t most, Random& random)
      : graph_(graph), host_at_(host_at), apart_(apart), most_(most), random_(random) {}

  [[nodiscard]] Coarser run() {
    std::vector<int> order(graph_.size.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
    coarser_.into.assign(order.size(), -1);
    for (const int v : order) {
      if (coarser_.into[as_index(v)] >= 0) continue;
      const int with = partner(v);
      coarser_.into[as_index(v)] = static_cast<int>(pairs_.size());
      if (with >= 0) coarser_.into[as_index(with)] = static_cast<int>(pairs_.size());
      pairs_.emplace_back(v, with);
    }
    merge();
    return std::move(coarser_);
  }

 private:
  // The neighbour with the heaviest edge for its size, one of equal ones at random; -1: none.
  int partner(int v) {
    int best = -1;
    double best_rating = 0;
    std::size_t ties = 1;
    for (const WeightedEdge& edge : graph_.of(v)) {
      const auto u = as_index(edge.to);
      if (coarser_.into[u] >= 0 || edge.to == v || (apart_ && host_at_[u] != host_at_[as_index(v)])) continue;
      if (graph_.size[u] + graph_.size[as_index(v)] > most_) continue;
      const auto weight = static_cast<double>(edge.weight);
      const double rating = weight * weight / static_cast<double>(graph_.size[u]);
      if (rating < best_rating) continue;
      ties = rating > best_rating ? 1 : ties + 1;
      best_rating = rating;
      if (random_.below(ties) == 0) best = edge.to;
    }
    return best;
  }

  void merge() {
    std::vector<std::size_t> last(pairs_.size(), 0);  // one more than the place of the last edge to each node
    Graph& coarse = coarser_.graph;
    coarse.begin.push_back(0);
    for (int node = 0; node < std::ssize(pairs_); ++node) {
      std::int64_t size = 0;
      for (const int v : {pairs_[as_index(node)].first, pairs_[as_index(node)].second}) {
        if (v < 0) continue;
        size += graph_.size[as_index(v)];
        for (const WeightedEdge& edge : graph_.of(v)) {
          const int to = coarser_.into[as_index(edge.to)];
          if (to == node) continue;
          std::size_t& place = last[as_index(to)];
          if (place > coarse.begin.back()) {
            coarse.edges[place - 1].weight += edge.weight;
          } else {
            coarse.edges.push_back({to, edge.weight});
            place = coarse.edges.size();
          }
        }
      }
      coarse.begin.push_back(coarse.edges.size());
      coarse.size.push_back(size);
    }
  }

  const Graph& graph_;
  const HostAt& host_at_;
  bool apart_;
  std::int64_t most_;
  Random& random_;
  Coarser coarser_;
  std::vector<std::pair<int, int>> pairs_;
};

}  // namespace

void v_cycle(const Graph& graph, Sizes sizes, const AnnealOptions& options, HostAt& host_at) {
  // Temperatures of the coarsest nodes, and of all others before the last. These and the sizes of nodes gave the fewest
  // bytes on random grids.
  constexpr std::int64_t coarsest = 200;
  constexpr std::int64_t coarse = 60;
  constexpr std::int64_t only = 120;  // where no nodes are joined
  Random random(options.seed);
  const std::int64_t hosts = std::ranges::count_if(sizes, [](std::int64_t size) { return size > 0; });
  const std::int64_t most = std::max<std::int64_t>(2, std::ranges::max(sizes) / 4);
  std::vector<Coarser> levels;
  std::vector<HostAt> host_of{host_at};  // the nodes of `graph`, of levels[0], ...
  while (true) {
    const Graph& finest = levels.empty() ? graph : levels.back().graph;
    const std::size_t nodes = finest.size.size();
    if (std::ssize(finest.size) < 6 * hosts) break;
    Coarser next = Coarsening(finest, host_of.back(), !options.forget, most, random).run();
    if (next.graph.size.size() * 20 > nodes * 19) break;
    HostAt above(next.graph.size.size());
    for (std::size_t v = 0; v < nodes; ++v) above[as_index(next.into[v])] = host_of.back()[v];
    host_of.push_back(std::move(above));
    levels.push_back(std::move(next));
  }
  for (std::size_t level = levels.size(); level-- > 0;) {
    const auto& [joined, into] = levels[level];
    AnnealOptions how = options;
    how.steps = options.steps * std::ssize(into) / std::ssize(graph.size);
    how.seed = random.next();
    how.hot = level + 1 == levels.size() ? coarsest : coarse;
    how.cold = coarse;
    anneal(joined, sizes, how, host_of[level + 1]);
    for (std::size_t v = 0; v < into.size(); ++v) host_of[level][v] = host_of[level + 1][as_index(into[v])];
  }
  host_at = std::move(host_of.front());
  AnnealOptions how = options;
  if (levels.empty() && options.forget) how.hot = only;
  anneal(graph, sizes, how, host_at);
}

}  // namespace onehop::detail
