#include "machine/mapping/choose.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "machine/mapping/as_index.h"
#include "machine/mapping/refine.h"
#include "machine/mapping/scotch.h"
#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::detail {

namespace {

constexpr int largest_anneal = 16'384;  // ranks; above, the search only accepts exchanges that help

auto rank_of(const MapCost& cost) { return std::tuple(cost.weighted_bytes, cost.byte_hops, cost.busiest_host_bytes); }

std::vector<int> needed(const HostLayout& layout, int positions) {
  layout.check();
  if (std::ssize(layout.host_of_rank) < positions) {
    throw BadInput("map: expected hosts that hold the " + base::counted(positions, "rank") + " of the grid, found " +
                   base::counted(layout.hosts(), "host") + " for " + base::counted(layout.host_of_rank.size(), "rank") +
                   ": use more hosts, more ranks per host, or a smaller grid");
  }
  return {layout.host_of_rank.begin(), layout.host_of_rank.begin() + positions};
}

bool cannot_improve(const MapCost& cost, std::optional<std::int64_t> bound, const HostDistance& distance) {
  if (cost.bytes_between_hosts == 0) return true;
  return bound && cost.bytes_between_hosts == *bound && distance.flat() && !distance.has_torus();
}

// Improves several maps, and keeps the best one that beats the map `before`.
class Search {
 public:
  Search(const Traffic& traffic, const HostDistance& distance, Sizes sizes, const MapOptions& options, MapCost before,
         std::optional<std::int64_t> bound)
      : traffic_(traffic),
        distance_(distance),
        sizes_(sizes),
        seed_(options.seed),
        before_(std::move(before)),
        bound_(bound),
        best_(before_),
        anneal_(traffic.positions() <= largest_anneal) {
    const std::int64_t most = anneal_ ? 6'000'000 : 1'200'000;
    const std::int64_t least = anneal_ && distance_.flat() ? 400'000 : 0;
    steps_ = options.steps >= 0 ? options.steps : std::clamp(std::int64_t{4000} * traffic.positions(), least, most);
  }

  // Every start is improved a little; the best two are then annealed. Empty if nothing better is found.
  [[nodiscard]] HostAt run(std::vector<HostAt> starts) {
    // Where it matters which host takes which positions, equal hosts change places; with many ranks for one start only.
    const bool placed = !distance_.flat() || distance_.has_torus();
    const bool only_hops = bound_ && before_.bytes_between_hosts == *bound_ && distance_.flat();
    if (!anneal_ && placed) starts.resize(1);
    const HostAt reference = starts.front();
    std::vector<Improved> improved;
    const std::int64_t share = (anneal_ ? steps_ / 5 : steps_) / std::ssize(starts);
    for (HostAt& start : starts) {
      if (placed) arrange(traffic_, distance_, sizes_, start);
      auto rank = consider(start);
      if (only_hops) continue;
      refine(traffic_, distance_, {seed_, share, false}, start);
      rank = consider(start);
      improved.emplace_back(rank, std::move(start));
    }
    std::ranges::stable_sort(improved, {}, &Improved::first);
    improved.resize(std::min<std::size_t>(2, improved.size()));
    if (anneal_ && !improved.empty()) anneal_all(improved, reference);
    return std::move(found_);
  }

 private:
  using Rank = decltype(rank_of(std::declval<MapCost>()));
  using Improved = std::pair<Rank, HostAt>;

  Rank consider(const HostAt& host_at) {
    MapCost cost = cost_of(traffic_, distance_, host_at);
    const Rank rank = rank_of(cost);
    if (cost.busiest_host_bytes <= before_.busiest_host_bytes && rank < rank_of(best_)) {
      best_ = std::move(cost);
      found_ = host_at;
    }
    return rank;
  }

  // Single positions move where all hosts are equally far from each other, before pairs are exchanged.
  void anneal_all(const std::vector<Improved>& improved, const HostAt& reference) {
    const bool flat = distance_.flat();
    const std::size_t moving = flat ? 4 : 0;
    const std::size_t runs = moving + (flat ? 1 : improved.size());
    for (std::size_t i = 0; i < runs && !cannot_improve(best_, bound_, distance_); ++i) {
      HostAt host_at = improved[i % improved.size()].second;
      const RefineOptions options{seed_ + i / improved.size(), steps_ * 2 / 5, true};
      if (i < moving) {
        anneal(traffic_, sizes_, options, reference, host_at);
        (void)consider(host_at);
        refine(traffic_, distance_, {seed_, steps_ / 20, false}, host_at);  // fewer bytes of the busiest host
      } else {
        refine(traffic_, distance_, options, host_at);
      }
      if (distance_.has_torus()) arrange(traffic_, distance_, sizes_, host_at);
      (void)consider(host_at);
    }
  }

  const Traffic& traffic_;
  const HostDistance& distance_;
  Sizes sizes_;
  std::uint64_t seed_;
  MapCost before_;
  std::optional<std::int64_t> bound_;
  MapCost best_;
  HostAt found_;
  bool anneal_;
  std::int64_t steps_ = 0;
};

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

void MapChoice::add_scotch() {
  ScotchResult result = scotch_map(traffic_, sizes_);
  if (!result.reason.empty()) {
    skip("scotch", result.reason);
    return;
  }
  add("scotch", std::move(result.host_at));
}

bool MapChoice::is_optimal() const { return cannot_improve(map_.candidates[best_].cost, map_.lower_bound, distance_); }

void MapChoice::add_local_search(std::vector<HostAt> starts, const MapOptions& options) {
  if (!options.refine || is_optimal()) return;
  starts.insert(starts.begin(), best_host_at_);
  HostAt found = Search(traffic_, distance_, sizes_, options, map_.candidates[best_].cost, map_.lower_bound)
                     .run(std::move(starts));
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
