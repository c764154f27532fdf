#include "machine/mapping/search.h"

#include <algorithm>
#include <utility>

#include "machine/mapping/refine.h"

namespace onehop::detail {

namespace {

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
class Search {
 public:
  Search(const MapSearch& task, const MapCost& before)
      : traffic_(task.traffic),
        distance_(task.distance),
        sizes_(task.sizes),
        seed_(task.options.seed),
        limit_{before},
        bound_(task.bound),
        best_(before),
        anneal_(traffic_.positions() <= largest_anneal) {
    const std::int64_t most = anneal_ ? 6'000'000 : 1'200'000;
    const std::int64_t least = anneal_ && distance_.flat() ? 400'000 : 0;
    steps_ = task.options.steps >= 0 ? task.options.steps
                                     : std::clamp(std::int64_t{4000} * traffic_.positions(), least, most);
  }

  [[nodiscard]] HostAt run(std::vector<HostAt> starts) {
    // Where it matters which host takes which positions, equal hosts change places; with many ranks for one start only.
    const bool placed = !distance_.flat() || distance_.has_torus();
    const bool only_hops = bound_ && best_.bytes_between_hosts == *bound_ && distance_.flat();
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

  [[nodiscard]] HostAt run_further(const HostAt& published, const HostAt& start) {
    if (!anneal_ || !distance_.flat()) return {};
    best_ = cost_of(traffic_, distance_, start);
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
      anneal_one({seed_ + 2 + run / 2, steps, true, percent}, published, host_at);
    }
    return std::move(found_);
  }

 private:
  using Rank = decltype(rank_of(std::declval<MapCost>()));
  using Improved = std::pair<Rank, HostAt>;

  static constexpr std::uint64_t further_runs = 3;
  static constexpr std::int64_t least_further = 2'000'000;
  static constexpr std::int64_t most_further = 8'000'000;

  [[nodiscard]] bool finished() const { return best_.bytes_between_hosts == 0 || near_bound(best_, bound_); }

  Rank consider(const HostAt& host_at) {
    MapCost cost = cost_of(traffic_, distance_, host_at);
    const Rank rank = rank_of(cost);
    if (limit_.holds(cost) && rank < rank_of(best_)) {
      best_ = std::move(cost);
      found_ = host_at;
    }
    return rank;
  }

  void anneal_one(const RefineOptions& options, const HostAt& reference, HostAt& host_at) {
    anneal(traffic_, sizes_, options, reference, host_at);
    (void)consider(host_at);
    refine(traffic_, distance_, {seed_, steps_ / 20, false}, host_at);  // fewer bytes of the busiest host
    if (distance_.has_torus()) arrange(traffic_, distance_, sizes_, host_at);
    (void)consider(host_at);
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
        anneal_one(options, reference, host_at);
        continue;
      }
      refine(traffic_, distance_, options, host_at);
      if (distance_.has_torus()) arrange(traffic_, distance_, sizes_, host_at);
      (void)consider(host_at);
    }
  }

  const Traffic& traffic_;
  const HostDistance& distance_;
  Sizes sizes_;
  std::uint64_t seed_;
  BusiestLimit limit_;
  std::optional<std::int64_t> bound_;
  MapCost best_;
  HostAt found_;
  bool anneal_;
  std::int64_t steps_ = 0;
};

}  // namespace

bool cannot_improve(const MapCost& cost, std::optional<std::int64_t> bound, const HostDistance& distance) {
  if (cost.bytes_between_hosts == 0) return true;
  // Hosts are at least one hop apart.
  const bool least_hops = !distance.has_torus() || cost.byte_hops == cost.bytes_between_hosts;
  return bound && cost.bytes_between_hosts == *bound && distance.flat() && least_hops;
}

bool near_bound(const MapCost& cost, std::optional<std::int64_t> bound) {
  return bound && cost.bytes_between_hosts - *bound <= *bound / 20;
}

HostAt MapSearch::improve(std::vector<HostAt> starts, const MapCost& before) const {
  return Search(*this, before).run(std::move(starts));
}

HostAt MapSearch::improve_further(const HostAt& published, const HostAt& start) const {
  return Search(*this, cost_of(traffic, distance, published)).run_further(published, start);
}

}  // namespace onehop::detail
