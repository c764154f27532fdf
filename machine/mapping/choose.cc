#include "machine/mapping/choose.h"

#include <algorithm>
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

bool MapChoice::is_optimal() const {
  const MapCost& cost = map_.candidates[best_].cost;
  if (cost.bytes_between_hosts == 0) return true;
  return map_.lower_bound && cost.bytes_between_hosts == *map_.lower_bound && distance_.flat() &&
         !distance_.has_torus();
}

void MapChoice::add_local_search(std::vector<HostAt> starts, const MapOptions& options) {
  const MapCost before = map_.candidates[best_].cost;
  const int positions = traffic_.positions();
  if (!options.refine || is_optimal()) return;
  starts.insert(starts.begin(), best_host_at_);
  const bool anneal = positions <= largest_anneal;
  const std::int64_t steps =
      options.steps >= 0 ? options.steps
                         : std::min<std::int64_t>(std::int64_t{4000} * positions, anneal ? 6'000'000 : 1'200'000);
  MapCost best = before;
  HostAt found;
  const auto consider = [&](const HostAt& host_at) {
    const MapCost cost = cost_of(traffic_, distance_, host_at);
    if (cost.busiest_host_bytes <= before.busiest_host_bytes && rank_of(cost) < rank_of(best)) {
      best = cost;
      found = host_at;
    }
    return rank_of(cost);
  };
  // Where it matters which host takes which positions, equal hosts change places; with many ranks for one start only.
  const bool placed = !distance_.flat() || distance_.has_torus();
  const bool only_hops = map_.lower_bound && before.bytes_between_hosts == *map_.lower_bound && distance_.flat();
  if (!anneal && placed) starts.resize(1);
  // Every start is improved a little; the best two are then annealed.
  using Improved = std::pair<decltype(rank_of(best)), HostAt>;
  std::vector<Improved> improved;
  const std::int64_t share = (anneal ? steps / 5 : steps) / std::ssize(starts);
  for (HostAt& start : starts) {
    if (placed) arrange(traffic_, distance_, sizes_, start);
    auto cost = consider(start);
    if (only_hops) continue;
    refine(traffic_, distance_, {options.seed, share, false}, start);
    cost = consider(start);
    improved.emplace_back(cost, std::move(start));
  }
  std::ranges::stable_sort(improved, {}, &Improved::first);
  for (std::size_t i = 0; anneal && i < std::min<std::size_t>(2, improved.size()); ++i) {
    HostAt& start = improved[i].second;
    refine(traffic_, distance_, {options.seed, steps * 2 / 5, true}, start);
    if (distance_.has_torus()) arrange(traffic_, distance_, sizes_, start);
    (void)consider(start);
  }
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
