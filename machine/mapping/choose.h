// Collects candidates, and makes the map of the best one.
#pragma once

#include <functional>
#include <string>

#include "machine/mapping/published.h"
#include "machine/mapping/traffic.h"

namespace onehop::detail {

// Ways to make maps of hosts of some sizes.
using Starts = std::vector<std::function<HostAt(Sizes)>>;

class MapChoice {
 public:
  // Keeps references to `layout` and `traffic`. Throws BadInput for a layout that cannot hold the traffic's positions.
  MapChoice(const HostLayout& layout, const Traffic& traffic);

  [[nodiscard]] Sizes sizes() const noexcept { return sizes_; }
  [[nodiscard]] const HostDistance& distance() const noexcept { return distance_; }
  [[nodiscard]] std::span<const int> host_of_rank() const noexcept { return host_of_rank_; }

  void add(std::string name, HostAt host_at);
  void skip(std::string name, std::string reason) { map_.skipped.push_back({std::move(name), std::move(reason)}); }
  // Adds the candidate "local search" if it beats the best one so far.
  void add_local_search(std::vector<HostAt> starts, const Starts& more, const MapOptions& options);
  void set_lower_bound(std::optional<std::int64_t> bytes) { map_.lower_bound = bytes; }

  [[nodiscard]] const MapCost& best() const { return map_.candidates[best_].cost; }
  // Whether no map can be better than the best one so far.
  [[nodiscard]] bool is_optimal() const;

  [[nodiscard]] RankMap take();

 private:
  const Traffic& traffic_;
  std::vector<int> host_of_rank_;  // of the ranks that the grid needs
  std::size_t all_ranks_;
  HostDistance distance_;
  std::vector<std::int64_t> sizes_;
  RankMap map_;
  std::size_t best_ = 0;  // of map_.candidates
  HostAt best_host_at_;
};

}  // namespace onehop::detail
