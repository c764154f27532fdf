#include "machine/mapping/refine.h"

#include <algorithm>
#include <utility>

namespace onehop::detail {

namespace {

class LocalSearch {
 public:
  LocalSearch(const Traffic& traffic, const HostDistance& distance, const RefineOptions& options, HostAt& host_at)
      : begin_(traffic.begin),
        edges_(weigh(traffic)),
        distance_(distance),
        options_(options),
        host_at_(host_at),
        random_(options.seed) {
    list_members();
    outside_.assign(as_index(distance.hosts()), 0);
    for (int p = 0; p < traffic.positions(); ++p) outside_[as_index(host_at_[as_index(p)])] += external(p);
  }

  void run() {
    if (edges_.empty()) return;
    const std::int64_t hot = options_.anneal ? options_.steps * 4 / 5 : 0;
    for (std::int64_t step = 0; step < hot; ++step) {
      // From 0.30 mean edges down to 0.12, in proportion to the steps left. Warmer, it would forget a good start.
      const std::int64_t temperature = unit_weight * (30 * (hot - step) + 12 * step) / (100 * hot);
      propose(temperature);
    }
    for (std::int64_t step = hot; step < options_.steps; ++step) propose(0);
  }

 private:
  void list_members() {
    first_.assign(as_index(distance_.hosts()) + 1, 0);
    for (const int host : host_at_) ++first_[as_index(host) + 1];
    for (std::size_t h = 1; h < first_.size(); ++h) first_[h] += first_[h - 1];
    members_.resize(host_at_.size());
    place_.resize(host_at_.size());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t p = 0; p < host_at_.size(); ++p) {
      place_[p] = next[as_index(host_at_[p])]++;
      members_[place_[p]] = static_cast<int>(p);
    }
  }

  [[nodiscard]] std::span<const WeightedEdge> of(int position) const {
    const auto p = as_index(position);
    return std::span(edges_).subspan(begin_[p], begin_[p + 1] - begin_[p]);
  }

  [[nodiscard]] std::int64_t external(int position) const {
    const int host = host_at_[as_index(position)];
    std::int64_t sum = 0;
    for (const WeightedEdge& edge : of(position)) sum += host_at_[as_index(edge.to)] != host ? edge.weight : 0;
    return sum;
  }

  [[nodiscard]] bool touches(int position, int host) const {
    return std::ranges::any_of(of(position),
                               [&](const WeightedEdge& edge) { return host_at_[as_index(edge.to)] == host; });
  }

  // The changes by a move of a position to another host: of the cost, and of the bytes that leave either host.
  struct Change {
    std::int64_t cost = 0;
    std::int64_t leaving_from = 0;
    std::int64_t leaving_to = 0;
  };
  [[nodiscard]] Change move(int position, int from, int to) const {
    Change change;
    for (const WeightedEdge& edge : of(position)) {
      const int other = host_at_[as_index(edge.to)];
      change.leaving_from += other == from ? edge.weight : -edge.weight;
      change.leaving_to += other == to ? -edge.weight : edge.weight;
      if (!distance_.flat()) {
        change.cost += edge.weight * (distance_.cost(to, other) - distance_.cost(from, other));
      }
    }
    if (distance_.flat()) change.cost = (change.leaving_from + change.leaving_to) / 2;
    return change;
  }

  [[nodiscard]] std::int64_t between(int a, int b) const {
    std::int64_t weight = 0;
    for (const WeightedEdge& edge : of(a)) weight += edge.to == b ? edge.weight : 0;
    return weight;
  }

  // A member of the host that has a neighbour on the other host; `known` is one.
  [[nodiscard]] int partner(int host, int other, int known) {
    const std::size_t size = first_[as_index(host) + 1] - first_[as_index(host)];
    for (int tries = 0; tries < 4; ++tries) {
      const int candidate = members_[first_[as_index(host)] + random_.below(size)];
      if (touches(candidate, other)) return candidate;
    }
    return known;
  }

  void propose(std::int64_t temperature) {
    const int v = static_cast<int>(random_.below(host_at_.size()));
    const std::span<const WeightedEdge> edges = of(v);
    if (edges.empty()) return;
    const int x = edges[random_.below(edges.size())].to;
    const int a = host_at_[as_index(v)];
    const int b = host_at_[as_index(x)];
    if (a == b) return;
    const int u = partner(b, a, x);
    const Change out = move(v, a, b);
    const Change back = move(u, b, a);
    const std::int64_t edge = between(v, u);
    const std::int64_t added = out.cost + back.cost + 2 * edge * (distance_.flat() ? 1 : distance_.cost(a, b));
    const std::int64_t new_a = outside_[as_index(a)] + out.leaving_from + back.leaving_to + 2 * edge;
    const std::int64_t new_b = outside_[as_index(b)] + out.leaving_to + back.leaving_from + 2 * edge;
    if (temperature > 0) {
      if (!accepted(random_, added, temperature)) return;
    } else if (added > 0 ||
               (added == 0 && std::max(new_a, new_b) > std::max(outside_[as_index(a)], outside_[as_index(b)]))) {
      return;
    }
    outside_[as_index(a)] = new_a;
    outside_[as_index(b)] = new_b;
    std::swap(host_at_[as_index(v)], host_at_[as_index(u)]);
    std::swap(members_[place_[as_index(v)]], members_[place_[as_index(u)]]);
    std::swap(place_[as_index(v)], place_[as_index(u)]);
  }

  const std::vector<std::size_t>& begin_;
  std::vector<WeightedEdge> edges_;
  const HostDistance& distance_;
  RefineOptions options_;
  HostAt& host_at_;
  Random random_;
  std::vector<std::size_t> first_;  // the members of host h are members_[first_[h]] .. members_[first_[h + 1]]
  std::vector<int> members_;
  std::vector<std::size_t> place_;     // of each position in members_
  std::vector<std::int64_t> outside_;  // bytes between each host and the others
};

}  // namespace

void refine(const Traffic& traffic, const HostDistance& distance, const RefineOptions& options, HostAt& host_at) {
  LocalSearch(traffic, distance, options, host_at).run();
}

}  // namespace onehop::detail
