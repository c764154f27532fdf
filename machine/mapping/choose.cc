#include "machine/mapping/choose.h"

#include <algorithm>
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

// The bytes that the busiest host of a map may have.
struct BusiestLimit {
  MapCost than;
  bool trade = false;  // more than `than` has, if the bytes between hosts fall by a larger factor than this rises

  [[nodiscard]] bool holds(const MapCost& cost) const {
    if (cost.busiest_host_bytes <= than.busiest_host_bytes) return true;
    __extension__ using Wide = __int128;
    return trade && static_cast<Wide>(cost.busiest_host_bytes) * cost.bytes_between_hosts <=
                        static_cast<Wide>(than.busiest_host_bytes) * than.bytes_between_hosts;
  }
};

// Improves several maps, and keeps the best one that beats the map `before`.
class Search : MapTask {
 public:
  Search(const MapTask& task, const MapCost& before) : MapTask(task), limit_{before}, best_(before) {
    const std::int64_t most = anneal_ ? 6'000'000 : 1'200'000;
    const std::int64_t least = anneal_ && distance.flat() ? 400'000 : 0;
    steps_ = options.steps >= 0 ? options.steps : std::clamp(std::int64_t{4000} * traffic.positions(), least, most);
  }

  // Every start is improved a little; the best two are then annealed. Returns a map that is better than all maps of the
  // cost `before`, without more bytes of the busiest host; empty if there is none.
  [[nodiscard]] HostAt run(std::vector<HostAt> starts) {
    // Where it matters which host takes which positions, equal hosts change places; with many ranks for one start only.
    const bool placed = !distance.flat() || distance.has_torus();
    const bool only_hops = bound && best_.bytes_between_hosts == *bound && distance.flat();
    if (!anneal_ && placed) starts.resize(1);
    const HostAt reference = starts.front();
    std::vector<Improved> improved;
    const std::int64_t share = (anneal_ ? steps_ / 5 : steps_) / std::ssize(starts);
    for (HostAt& start : starts) {
      if (placed) arrange(traffic, distance, sizes, start);
      auto rank = consider(start);
      if (only_hops) continue;
      refine(traffic, distance, {options.seed, share, false}, start);
      rank = consider(start);
      improved.emplace_back(rank, std::move(start));
    }
    std::ranges::stable_sort(improved, {}, &Improved::first);
    improved.resize(std::min<std::size_t>(2, improved.size()));
    if (anneal_ && !improved.empty()) anneal_all(improved, reference);
    return std::move(found_);
  }

  // Anneals `start` longer, up to three times, until it is near the bound. The bytes of the busiest host stay at most
  // those of `published` the first time, and then rise by a smaller factor than that by which the bytes between hosts
  // fall, against `published`. Only for hosts that are equally far from each other, and up to
  // 16,384 ranks. Empty if nothing better is found.
  [[nodiscard]] HostAt run_further(const HostAt& published, const HostAt& start) {
    if (!anneal_ || !distance.flat()) return {};
    best_ = cost_of(traffic, distance, start);
    __extension__ using Wide = __int128;
    std::int64_t percent = 100;
    for (std::uint64_t run = 0; run < further_runs && !finished(); ++run) {
      // From the second run on the busiest host may have more, by the factor by which the bytes between hosts have
      // fallen and are likely to fall further.
      limit_.trade = run > 0;
      if (run == 1) {
        const Wide fallen = static_cast<Wide>(105) * limit_.than.bytes_between_hosts / best_.bytes_between_hosts;
        percent = std::max(percent, static_cast<std::int64_t>(std::min<Wide>(fallen, 1'000'000)));
      }
      HostAt host_at = found_.empty() || run < 2 ? start : found_;
      const std::int64_t steps = std::clamp(4 * steps_, least_further, most_further);
      anneal_one({options.seed + 2 + run / 2, steps, true, percent}, published, host_at);
    }
    return std::move(found_);
  }

 private:
  using Rank = decltype(rank_of(std::declval<MapCost>()));
  using Improved = std::pair<Rank, HostAt>;

  static constexpr std::uint64_t further_runs = 3;
  static constexpr std::int64_t least_further = 2'000'000;
  static constexpr std::int64_t most_further = 8'000'000;

  [[nodiscard]] bool finished() const { return best_.bytes_between_hosts == 0 || near_bound(best_, bound); }

  Rank consider(const HostAt& host_at) {
    MapCost cost = cost_of(traffic, distance, host_at);
    const Rank rank = rank_of(cost);
    if (limit_.holds(cost) && rank < rank_of(best_)) {
      best_ = std::move(cost);
      found_ = host_at;
    }
    return rank;
  }

  void anneal_one(const RefineOptions& how, const HostAt& reference, HostAt& host_at) {
    anneal(traffic, sizes, how, reference, host_at);
    (void)consider(host_at);
    refine(traffic, distance, {options.seed, steps_ / 20, false}, host_at);  // fewer bytes of the busiest host
    if (distance.has_torus()) arrange(traffic, distance, sizes, host_at);
    (void)consider(host_at);
  }

  // Single positions move where all hosts are equally far from each other, before pairs are exchanged.
  void anneal_all(const std::vector<Improved>& improved, const HostAt& reference) {
    const bool flat = distance.flat();
    const std::size_t moving = flat ? 4 : 0;
    const std::size_t runs = moving + (flat ? 1 : improved.size());
    for (std::size_t i = 0; i < runs && !cannot_improve(best_, bound, distance); ++i) {
      HostAt host_at = improved[i % improved.size()].second;
      const RefineOptions how{options.seed + i / improved.size(), steps_ * 2 / 5, true};
      if (i < moving) {
        anneal_one(how, reference, host_at);
        continue;
      }
      refine(traffic, distance, how, host_at);
      if (distance.has_torus()) arrange(traffic, distance, sizes, host_at);
      (void)consider(host_at);
    }
  }

  BusiestLimit limit_;
  MapCost best_;
  HostAt found_;
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

bool near_bound(const MapCost& cost, std::optional<std::int64_t> bound) {
  return bound && cost.bytes_between_hosts - *bound <= *bound / 20;
}

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

void MapChoice::add_local_search(std::vector<HostAt> starts, const MapOptions& options) {
  if (!options.refine || is_optimal()) return;
  published_ = best_host_at_;
  starts.insert(starts.begin(), published_);
  replace_local_search(Search({traffic_, distance_, sizes_, options, map_.lower_bound}, best()).run(std::move(starts)));
}

void MapChoice::search_further(const MapOptions& options) {
  if (published_.empty() || options.steps >= 0) return;
  Search search({traffic_, distance_, sizes_, options, map_.lower_bound}, cost_of(traffic_, distance_, published_));
  replace_local_search(search.run_further(published_, best_host_at_));
}

void MapChoice::replace_local_search(HostAt found) {
  if (found.empty()) return;
  std::erase_if(map_.candidates, [](const MapCandidate& each) { return each.name == "local search"; });
  best_ = 0;
  add("local search", std::move(found));
  best_ = map_.candidates.size() - 1;
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
