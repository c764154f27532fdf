#include "machine/mapping/choose.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "machine/mapping/refine.h"
#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::detail {

namespace {

// The order of maps: the better one is smaller.
auto rank_of(const MapCost& cost) { return std::tuple(cost.weighted_bytes, cost.byte_hops, cost.busiest_host_bytes); }

// Whether no map is better, as far as the bound says.
bool cannot_improve(const MapCost& cost, std::optional<std::int64_t> bound, const HostDistance& distance) {
  if (cost.bytes_between_hosts == 0) return true;
  // Hosts are at least one hop apart.
  const bool least_hops = !distance.has_torus() || cost.byte_hops == cost.bytes_between_hosts;
  return bound && cost.bytes_between_hosts == *bound && distance.flat() && least_hops;
}

// A search over the maps of a traffic.
struct MapTask {
  const Traffic& traffic;
  const HostDistance& distance;
  Sizes sizes;
  const MapOptions& options;
  std::optional<std::int64_t> bound;
};

constexpr int largest_anneal = 16'384;  // ranks; above, the search only accepts exchanges that help

// The bytes that the busiest host may have: those of `than`, or more by the fourth power of the factor by which the
// bytes between hosts fall.
bool busiest_holds(const MapCost& cost, const MapCost& than) {
  if (cost.busiest_host_bytes <= than.busiest_host_bytes) return true;
  const double fall = static_cast<double>(than.bytes_between_hosts) / static_cast<double>(cost.bytes_between_hosts);
  return static_cast<double>(cost.busiest_host_bytes) <=
         static_cast<double>(than.busiest_host_bytes) * fall * fall * fall * fall;
}

// Improves several maps, and keeps the best one that beats the map `before`.
class Search : MapTask {
 public:
  Search(const MapTask& task, const MapCost& before) : MapTask(task), before_(before), best_(before) {
    const std::int64_t ranks = traffic.positions();
    if (!anneal_) {
      steps_ = std::min(4000 * ranks, std::int64_t{1'200'000});
    } else if (distance.flat()) {
      steps_ = std::clamp(30'000 * ranks, std::int64_t{1'000'000}, std::int64_t{24'000'000});
    } else {
      steps_ = std::min(4000 * ranks, std::int64_t{6'000'000});
    }
    if (options.steps >= 0) steps_ = options.steps;
  }

  // Every start is improved a little; then follow V-cycles, or annealing of the best two where hosts are not equally
  // far from each other. Returns a map that is better than all maps of the cost `before`; empty if there is none.
  [[nodiscard]] HostAt run(std::vector<HostAt> starts, const Starts& more) {
    // Where it matters which host takes which positions, equal hosts change places; with many ranks for one start only.
    const bool placed = !distance.flat() || distance.has_torus();
    const bool only_hops = bound && best_.bytes_between_hosts == *bound && distance.flat();
    if (!anneal_ && placed) starts.resize(1);
    const HostAt reference = starts.front();
    const std::int64_t share = (anneal_ ? steps_ / 10 : steps_) / std::ssize(starts);
    for (HostAt& start : starts) {
      if (placed) arrange(traffic, distance, sizes, start);
      consider(start);
      if (only_hops) continue;
      refine(traffic, distance, {options.seed, share, false}, start);
      consider(start);
    }
    if (anneal_ && !only_hops) {
      if (distance.flat()) {
        multilevel(reference, more);
      } else {
        anneal_pairs();
      }
    }
    return std::move(found_);
  }

 private:
  using Rank = decltype(rank_of(std::declval<MapCost>()));
  using Improved = std::pair<Rank, HostAt>;

  [[nodiscard]] bool finished() const { return cannot_improve(best_, bound, distance); }

  void consider(const HostAt& host_at) {
    MapCost cost = cost_of(traffic, distance, host_at);
    Improved improved{rank_of(cost), host_at};
    const auto at = std::ranges::upper_bound(improved_, improved.first, {}, &Improved::first);
    if (at == improved_.begin() || std::prev(at)->first < improved.first) improved_.insert(at, std::move(improved));
    improved_.resize(std::min<std::size_t>(4, improved_.size()));
    if (!busiest_holds(cost, before_) || rank_of(cost) >= rank_of(best_)) return;
    best_ = std::move(cost);
    found_ = host_at;
  }

  void cycle(const Graph& graph, const AnnealOptions& how, HostAt host_at) {
    v_cycle(graph, sizes, how, host_at);
    polish(how.steps, std::move(host_at));
  }

  // Ends with exchanges that leave the busiest host fewer bytes.
  void polish(std::int64_t steps, HostAt host_at) {
    refine(traffic, distance, {options.seed, steps / 10, false}, host_at);
    if (distance.has_torus()) arrange(traffic, distance, sizes, host_at);
    consider(host_at);
  }

  // Many short V-cycles begin with the hosts in any order; long ones then improve the best maps, and others are
  // annealed from the best published maps.
  void multilevel(const HostAt& reference, const Starts& more) {
    const Graph graph = graph_of(traffic);
    const std::vector<Improved> before = improved_;
    const std::int64_t limit = std::ranges::max(leaving(graph, sizes.size(), reference));
    const std::int64_t ranks = traffic.positions();
    const std::int64_t starts = std::clamp<std::int64_t>(steps_ / (1200 * ranks), 3, 80);
    AnnealOptions how{options.seed, steps_ / (6 * starts)};  // as many again for the coarse graphs
    how.forget = true;
    Random random(options.seed);
    std::vector<int> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t i = 0; i < starts && !finished(); ++i, ++how.seed) {
      std::vector<std::int64_t> shuffled;
      for (const int host : order) shuffled.push_back(sizes[as_index(host)]);
      HostAt start = more[as_index(i) % more.size()](shuffled);
      for (int& host : start) host = order[as_index(host)];
      cycle(graph, how, std::move(start));
      for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random.below(k)]);
    }
    const std::size_t longer = ranks > 800 ? 1 : 3;
    how.steps = steps_ / (6 * static_cast<std::int64_t>(longer));
    how.forget = false;
    for (std::size_t i = 0; i < longer && !finished(); ++i, ++how.seed) {
      how.limit = i == 1 ? limit : how.no_limit;
      cycle(graph, how, improved_[i % improved_.size()].second);
      AnnealOptions warm = how;
      warm.steps *= 2;
      warm.limit = i == 0 ? limit : how.no_limit;
      HostAt host_at = before[i % before.size()].second;
      anneal(graph, sizes, warm, host_at);
      polish(how.steps, std::move(host_at));
    }
  }

  void anneal_pairs() {
    std::vector<Improved> improved = improved_;
    improved.resize(std::min<std::size_t>(2, improved.size()));
    for (auto& [rank, host_at] : improved) {
      if (finished()) return;
      refine(traffic, distance, {options.seed, steps_ * 2 / 5, true}, host_at);
      if (distance.has_torus()) arrange(traffic, distance, sizes, host_at);
      consider(host_at);
    }
  }

  MapCost before_;
  MapCost best_;
  HostAt found_;
  std::vector<Improved> improved_;  // the best maps, the busiest host aside
  bool anneal_ = traffic.positions() <= largest_anneal;
  std::int64_t steps_ = 0;
};

std::vector<int> needed(const HostLayout& layout, int positions) {
  layout.check();
  if (std::ssize(layout.host_of_rank) < positions) {
    throw BadInput("map: expected hosts that hold the " + base::counted(positions, "rank") + " of the grid, found " +
                   base::counted(layout.hosts(), "host") + " for " + base::counted(layout.host_of_rank.size(), "rank") +
                   ": use more hosts, more ranks per host, or a smaller grid");
  }
  return {layout.host_of_rank.begin(), layout.host_of_rank.begin() + positions};
}

}  // namespace

MapChoice::MapChoice(const HostLayout& layout, const Traffic& traffic)
    : traffic_(traffic),
      host_of_rank_(needed(layout, traffic.positions())),
      all_ranks_(layout.host_of_rank.size()),
      distance_(layout),
      sizes_(host_sizes(host_of_rank_, layout.hosts())) {}

void MapChoice::add(std::string name, HostAt host_at) {
  const MapCost cost = cost_of(traffic_, distance_, host_at);
  map_.candidates.push_back({std::move(name), cost});
  if (best_host_at_.empty() || rank_of(cost) < rank_of(map_.candidates[best_].cost)) {
    best_ = map_.candidates.size() - 1;
    best_host_at_ = std::move(host_at);
  }
}

bool MapChoice::is_optimal() const { return cannot_improve(best(), map_.lower_bound, distance_); }

void MapChoice::add_local_search(std::vector<HostAt> starts, const Starts& more, const MapOptions& options) {
  if (!options.refine || is_optimal()) return;
  starts.insert(starts.begin(), best_host_at_);
  HostAt found = Search({traffic_, distance_, sizes_, options, map_.lower_bound}, best()).run(std::move(starts), more);
  if (!found.empty()) add("local search", std::move(found));
}

RankMap MapChoice::take() {
  map_.chosen = map_.candidates[best_].name;
  map_.host_at = std::move(best_host_at_);
  std::vector<std::vector<int>> ranks(sizes_.size());
  for (std::size_t rank = host_of_rank_.size(); rank-- > 0;) {
    ranks[as_index(host_of_rank_[rank])].push_back(static_cast<int>(rank));
  }
  map_.position_of.assign(all_ranks_, -1);
  for (std::size_t position = 0; position < map_.host_at.size(); ++position) {
    std::vector<int>& free = ranks[as_index(map_.host_at[position])];
    map_.rank_at.push_back(free.back());
    map_.position_of[as_index(free.back())] = static_cast<int>(position);
    free.pop_back();
  }
  return std::move(map_);
}

}  // namespace onehop::detail
