#include "machine/mapping/choose.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "machine/mapping/as_index.h"
#include "machine/mapping/search.h"
#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::detail {

namespace {

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

void MapChoice::add_local_search(std::vector<HostAt> starts, const MapOptions& options) {
  if (!options.refine || is_optimal()) return;
  const MapSearch search{traffic_, distance_, sizes_, options, map_.lower_bound};
  published_ = best_host_at_;
  starts.insert(starts.begin(), published_);
  replace_local_search(search.improve(std::move(starts), best()));
}

void MapChoice::search_further(const MapOptions& options) {
  if (published_.empty() || options.steps >= 0) return;
  const MapSearch search{traffic_, distance_, sizes_, options, map_.lower_bound};
  replace_local_search(search.improve_further(published_, best_host_at_));
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
