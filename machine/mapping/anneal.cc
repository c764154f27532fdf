// Simulated annealing that moves one position at a time, so that hosts are a little too full or too empty for a while;
// that costs extra, as does weight of a host beyond that of the busiest host of a reference. Far more maps are within
// reach of a move than with exchanges.
#include <algorithm>
#include <utility>

#include "machine/mapping/refine.h"

namespace onehop::detail {

namespace {

class Annealing {
 public:
  Annealing(const Traffic& traffic, Sizes sizes, const RefineOptions& options, const HostAt& reference, HostAt& host_at)
      : begin_(traffic.begin),
        edges_(weigh(traffic)),
        sizes_(sizes),
        options_(options),
        host_at_(host_at),
        random_(options.seed),
        excess_(sizes.size(), 0),
        outside_(leaving(host_at)),
        limit_(std::ranges::max(leaving(reference)) * options.busiest_percent / 100) {
    for (const std::int64_t weight : outside_) beyond_ += std::max<std::int64_t>(0, weight - limit_);
  }

  void run() {
    if (edges_.empty() || excess_.size() < 2) return;
    HostAt best = host_at_;
    std::int64_t best_cost = beyond_ == 0 ? 0 : INT64_MAX;
    for (std::int64_t step = 0; step < options_.steps; ++step) {
      const std::int64_t left = options_.steps - step;
      const std::int64_t temperature = unit_weight * (hot * left + cold * step) / (100 * options_.steps);
      propose(temperature);
      if (unbalanced_ == 0 && beyond_ == 0 && cost_ < best_cost && left < options_.steps / 4) {
        best_cost = cost_;
        best = host_at_;
      }
    }
    balance();
    if (unbalanced_ != 0 || beyond_ != 0 || cost_ > best_cost) host_at_ = std::move(best);
  }

 private:
  // Temperatures at the start and at the end, in hundredths of the mean weight, and the cost of the first position too
  // many. Of several settings on random grids, these gave the fewest bytes.
  static constexpr std::int64_t hot = 60;
  static constexpr std::int64_t cold = 20;
  static constexpr std::int64_t penalty = unit_weight;

  // The weight between each host and the others.
  [[nodiscard]] std::vector<std::int64_t> leaving(const HostAt& host_at) const {
    std::vector<std::int64_t> weight(sizes_.size(), 0);
    for (int p = 0; p < std::ssize(host_at); ++p) {
      const int host = host_at[as_index(p)];
      for (const WeightedEdge& edge : of(p)) {
        if (host_at[as_index(edge.to)] != host) weight[as_index(host)] += edge.weight;
      }
    }
    return weight;
  }

  [[nodiscard]] std::span<const WeightedEdge> of(int position) const {
    const auto p = as_index(position);
    return std::span(edges_).subspan(begin_[p], begin_[p + 1] - begin_[p]);
  }

  // The changes by a move: of the weight between hosts, and of the weight that leaves either host.
  struct Change {
    std::int64_t added = 0;
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  [[nodiscard]] Change change(int position, int from, int to) const {
    std::int64_t all = 0;
    std::int64_t left = 0;
    std::int64_t joined = 0;
    for (const WeightedEdge& edge : of(position)) {
      const int there = host_at_[as_index(edge.to)];
      all += edge.weight;
      left += there == from ? edge.weight : 0;
      joined += there == to ? edge.weight : 0;
    }
    return {left - joined, 2 * left - all, all - 2 * joined};
  }

  // How much more weight is beyond the limit of a host.
  [[nodiscard]] std::int64_t beyond(int host, std::int64_t change) const {
    const std::int64_t now = outside_[as_index(host)] - limit_;
    return std::max<std::int64_t>(0, now + change) - std::max<std::int64_t>(0, now);
  }

  void move(int position, int from, int to, const Change& change) {
    std::int64_t& a = excess_[as_index(from)];
    std::int64_t& b = excess_[as_index(to)];
    unbalanced_ += (a > 0 ? -1 : 1) + (b < 0 ? -1 : 1);
    --a;
    ++b;
    cost_ += change.added;
    beyond_ += beyond(from, change.from) + beyond(to, change.to);
    outside_[as_index(from)] += change.from;
    outside_[as_index(to)] += change.to;
    host_at_[as_index(position)] = to;
  }

  void propose(std::int64_t temperature) {
    const int v = static_cast<int>(random_.below(host_at_.size()));
    const std::span<const WeightedEdge> edges = of(v);
    if (edges.empty()) return;
    const int from = host_at_[as_index(v)];
    const int to = host_at_[as_index(edges[random_.below(edges.size())].to)];
    if (from == to || sizes_[as_index(from)] + excess_[as_index(from)] == 1) return;  // an empty host has no neighbours
    const Change moved = change(v, from, to);
    const std::int64_t fuller = excess_[as_index(to)] - excess_[as_index(from)] + 1;
    const std::int64_t added = moved.added + beyond(from, moved.from) + beyond(to, moved.to) + 2 * penalty * fuller;
    if (accepted(random_, added, temperature)) move(v, from, to, moved);
  }

  // Hands positions on along the shortest chains of hosts, from hosts that are too full to hosts that are too empty.
  void balance() {
    for (std::size_t host = 0; host < excess_.size(); ++host) {
      while (excess_[host] > 0 && hand_on(static_cast<int>(host))) {
      }
    }
  }

  // Returns false if no chain leads to a host that is too empty.
  bool hand_on(int full) {
    std::vector<int> before(excess_.size(), -1);
    std::vector<int> queue{full};
    before[as_index(full)] = full;
    int empty = -1;
    for (std::size_t next = 0; next < queue.size() && empty < 0; ++next) {
      const int from = queue[next];
      for (int p = 0; p < std::ssize(host_at_); ++p) {
        if (host_at_[as_index(p)] != from) continue;
        for (const WeightedEdge& edge : of(p)) {
          const int to = host_at_[as_index(edge.to)];
          if (before[as_index(to)] >= 0) continue;
          before[as_index(to)] = from;
          queue.push_back(to);
          if (excess_[as_index(to)] < 0 && empty < 0) empty = to;
        }
      }
    }
    if (empty < 0) return false;
    for (int to = empty; to != full; to = before[as_index(to)]) hand_over(before[as_index(to)], to);
    return true;
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

  const std::vector<std::size_t>& begin_;
  std::vector<WeightedEdge> edges_;
  Sizes sizes_;
  RefineOptions options_;
  HostAt& host_at_;
  Random random_;
  std::vector<std::int64_t> excess_;   // positions of each host above its size
  std::int64_t unbalanced_ = 0;        // the sum of their magnitudes
  std::vector<std::int64_t> outside_;  // the weight between each host and the others
  std::int64_t limit_ = 0;             // of those
  std::int64_t beyond_ = 0;            // the sum of what is above the limit
  std::int64_t cost_ = 0;              // the weight between hosts, above that of the start
};

}  // namespace

void anneal(const Traffic& traffic, Sizes sizes, const RefineOptions& options, const HostAt& reference,
            HostAt& host_at) {
  Annealing(traffic, sizes, options, reference, host_at).run();
}

}  // namespace onehop::detail
