#include "onehop/machine/mapping.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "machine/mapping/choose.h"
#include "machine/mapping/published.h"
#include "onehop/error.h"
#include "src/base/checked.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace onehop {

namespace {

constexpr std::int64_t largest_sweep = 16'384;  // ranks; above, the local search starts from one map only

void check_options(const MapOptions& options) {
  // Steps are multiplied by 1024 * 100 in the search.
  if (options.steps > 1'000'000'000'000) {
    throw BadInput("map: expected at most 10^12 steps of the local search, found " + std::to_string(options.steps));
  }
}

// The bytes of all messages times the largest cost must fit, too.
void check_costs(std::int64_t bytes, const detail::HostDistance& distance, const HostLayout& layout) {
  std::int64_t most = distance.largest_cost();
  std::int64_t hops = 1;
  for (const std::int64_t extent : layout.torus) hops = detail::checked_add(hops, extent / 2, "the hops of the torus");
  most = std::max(most, hops);
  (void)detail::checked_multiply(bytes, most, "the bytes of all messages times their cost");
}

std::int64_t total_bytes(const detail::Traffic& traffic) {
  std::int64_t bytes = 0;
  for (const detail::TrafficEdge& edge : traffic.edges) bytes += edge.both;
  return bytes;
}

void add_folded(const detail::GridShape& shape, detail::Sizes torus, detail::MapChoice& choice) {
  const detail::Sizes sizes = choice.sizes();
  const bool filled = std::ranges::all_of(sizes, [](std::int64_t size) { return size > 0; });
  const std::int64_t places = std::accumulate(torus.begin(), torus.end(), std::int64_t{1}, std::multiplies{});
  if (!filled || places != std::ssize(sizes)) {
    choice.skip("folded boxes", "the hosts do not fill the torus");
    return;
  }
  auto folded = detail::folded_boxes(shape, sizes, torus);
  if (folded) {
    choice.add("folded boxes", std::move(*folded));
  } else {
    choice.skip("folded boxes", "found no boxes that fill the torus");
  }
}

void add_published(const detail::GridShape& shape, std::span<const std::int64_t> torus, detail::MapChoice& choice) {
  const detail::Sizes sizes = choice.sizes();
  std::int64_t largest = 0;
  for (const std::int64_t size : sizes) largest = std::max(largest, size);
  const bool equal = std::ranges::all_of(sizes, [&](std::int64_t size) { return size == 0 || size == largest; });
  auto box = equal ? detail::best_box(shape, sizes) : detail::unequal_boxes(shape, sizes);
  if (box) {
    choice.add("best box", std::move(*box));
  } else {
    choice.skip("best box", equal ? "no box of " + std::to_string(largest) + " ranks tiles the grid"
                                  : std::string("found no boxes of the hosts' sizes that tile the grid"));
  }
  if (!torus.empty() && equal) add_folded(shape, torus, choice);
  choice.add("hyperplane", detail::hyperplane(shape, sizes));
  choice.add("k-d tree", detail::kd_tree(shape, sizes));
  choice.add("strips", detail::strips(shape, sizes));
}

}  // namespace

const MapCost& RankMap::cost() const {
  const auto found = std::ranges::find(candidates, chosen, &MapCandidate::name);
  if (found == candidates.end()) throw BadInput("map: expected a map made by onehop, found one without candidates");
  return found->cost;
}

RankMap Grid::map(const HostLayout& hosts, const MapOptions& options) const {
  const double start = base::steady_seconds();
  check_options(options);
  const detail::GridShape shape(*this);
  hosts.check();
  const detail::Traffic traffic = detail::traffic_of(*this);
  detail::MapChoice choice(hosts, traffic);
  check_costs(total_bytes(traffic), choice.distance(), hosts);
  choice.add("row-major", {choice.host_of_rank().begin(), choice.host_of_rank().end()});
  add_published(shape, hosts.torus, choice);
  choice.set_lower_bound(detail::surface_bound(shape, choice.sizes()));
  std::vector<detail::HostAt> starts;
  if (options.refine && !choice.is_optimal()) {
    starts = detail::other_strips(shape, choice.sizes(), traffic, choice.distance(), 3);
    if (shape.positions() <= largest_sweep) starts.push_back(detail::bisection(shape, choice.sizes()));
  }
  choice.add_local_search(std::move(starts),
                          {[&](detail::Sizes sizes) { return detail::strips(shape, sizes); },
                           [&](detail::Sizes sizes) { return detail::bisection(shape, sizes); }},
                          options);
  RankMap map = choice.take();
  map.seconds = base::steady_seconds() - start;
  return map;
}

RankMap map_pairs(int positions, std::span<const PairCount> pairs, const HostLayout& hosts, const MapOptions& options) {
  const double start = base::steady_seconds();
  check_options(options);
  if (positions < 1 || positions > max_ranks) {
    throw BadInput("map: expected 1 to " + std::to_string(max_ranks) + " ranks, found " + std::to_string(positions));
  }
  const detail::Traffic traffic = detail::traffic_of(positions, pairs);
  detail::MapChoice choice(hosts, traffic);
  check_costs(total_bytes(traffic), choice.distance(), hosts);
  choice.add("row-major", {choice.host_of_rank().begin(), choice.host_of_rank().end()});
  choice.add("greedy", detail::grow(traffic, choice.sizes()));
  choice.add_local_search({}, {[&](detail::Sizes sizes) { return detail::grow(traffic, sizes); }}, options);
  RankMap map = choice.take();
  map.seconds = base::steady_seconds() - start;
  return map;
}

RankMap map_schedule(const Schedule& schedule, const HostLayout& hosts, const MapOptions& options) {
  const Count counted = count(schedule);
  return map_pairs(schedule.ranks, counted.pairs, hosts, options);
}

MapCost map_cost(const Grid& grid, const HostLayout& hosts, std::span<const int> rank_at) {
  const detail::Traffic traffic = detail::traffic_of(grid);
  hosts.check();
  const auto ranks = static_cast<int>(hosts.host_of_rank.size());
  if (static_cast<int>(rank_at.size()) != traffic.positions()) {
    throw BadInput("map: expected a rank for each of " + base::counted(traffic.positions(), "position") + ", found " +
                   std::to_string(rank_at.size()));
  }
  std::vector<int> seen_at(static_cast<std::size_t>(ranks), -1);
  std::vector<int> host_at;
  for (std::size_t position = 0; position < rank_at.size(); ++position) {
    const int rank = rank_at[position];
    const std::string where = " at position " + std::to_string(position);
    if (rank < 0 || rank >= ranks) {
      throw BadInput("map: expected ranks from 0 to " + std::to_string(ranks - 1) + ", found " + std::to_string(rank) +
                     where);
    }
    int& seen = seen_at[static_cast<std::size_t>(rank)];
    if (seen >= 0) {
      throw BadInput("map: expected every rank once, found rank " + std::to_string(rank) + where + " and at position " +
                     std::to_string(seen));
    }
    seen = static_cast<int>(position);
    host_at.push_back(hosts.host_of_rank[static_cast<std::size_t>(rank)]);
  }
  const detail::HostDistance distance(hosts);
  check_costs(total_bytes(traffic), distance, hosts);
  return detail::cost_of(traffic, distance, host_at);
}

}  // namespace onehop
