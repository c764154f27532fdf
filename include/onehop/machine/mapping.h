// Maps choose which rank takes which position of a grid, so that few bytes travel between hosts. They are computed from
// plain data, without communication: equal inputs give equal maps on every rank. docs/reference/mapping.md describes
// the candidates.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/count.h"
#include "onehop/group.h"
#include "onehop/schedule.h"

namespace onehop {

// Which host each rank runs on, and how the hosts are joined.
struct HostLayout {
  std::vector<int> host_of_rank;  // hosts are numbered from 0; rank r runs on host_of_rank[r]
  // Units of hosts, nested, innermost first: {4, 8} means chassis of 4 consecutive hosts and cabinets of 8 chassis.
  std::vector<std::int64_t> groups = {};
  // Cost of a byte that crosses the border of a host, of a unit of groups[0], of groups[1], ... Empty: always 1.
  std::vector<std::int64_t> costs = {};
  std::vector<std::int64_t> torus = {};  // extents of a torus of hosts, numbered in C order; empty: no torus

  // Ranks fill the hosts one after the other: host h holds sizes[h] ranks. Throws BadInput.
  [[nodiscard]] static HostLayout of_sizes(std::span<const std::int64_t> sizes);
  [[nodiscard]] static HostLayout of_equal(std::int64_t hosts, std::int64_t per_host);

  // The hosts of a group: ranks that share memory are on one host. Hosts are numbered in the order of their first
  // ranks. Collective.
  [[nodiscard]] static HostLayout of_group(const Group& group);

  [[nodiscard]] int hosts() const;  // the largest host number plus one
  // Throws BadInput that names what was expected and found.
  void check() const;
};

struct MapOptions {
  bool refine = true;       // improve the best candidate by local search
  std::uint64_t seed = 1;   // of the local search
  std::int64_t steps = -1;  // exchanges that the local search proposes; below 0: chosen by the number of ranks
};

// What a map costs. An edge is an ordered pair of positions that exchange data.
struct MapCost {
  std::int64_t edges_between_hosts = 0;
  std::int64_t busiest_host_edges = 0;  // most edges that leave one host, or enter it
  std::int64_t bytes_between_hosts = 0;
  std::int64_t busiest_host_bytes = 0;
  std::int64_t weighted_bytes = 0;  // bytes between hosts, times the cost of the outermost border that they cross
  std::int64_t byte_hops = 0;       // bytes between hosts, times their hops on the torus; 0 without a torus
  // Bytes by the outermost border that they cross: inside a host, between hosts, between units of groups[0], ...
  std::vector<std::int64_t> bytes_by_level;
  friend bool operator==(const MapCost&, const MapCost&) = default;
};

struct MapCandidate {
  std::string name;  // "row-major", "best box", "hyperplane", "k-d tree", "strips", "local search"
  MapCost cost;
};

struct SkippedCandidate {
  std::string name;
  std::string reason;
};

// The chosen map. Positions are numbered in C order; for a schedule they are the ranks that the schedule names.
// The ranks of a host take its positions in ascending order.
struct RankMap {
  std::vector<int> rank_at;      // the rank at each position
  std::vector<int> position_of;  // the position of each rank; -1 for ranks that the grid does not need
  std::vector<int> host_at;      // the host of each position
  std::vector<MapCandidate> candidates;
  std::vector<SkippedCandidate> skipped;
  std::string chosen;
  // No map has fewer bytes between hosts; none if unknown.
  std::optional<std::int64_t> lower_bound;
  double seconds = 0;

  [[nodiscard]] const MapCost& cost() const;  // of the chosen candidate
};

// A grid of ranks that exchange data with their nearest neighbours.
struct Grid {
  std::vector<std::int64_t> extents;     // positions per dimension, C order: the last runs fastest
  std::vector<bool> periodic = {};       // per dimension; empty: open ends
  std::vector<std::int64_t> bytes = {};  // of one message per dimension; empty: 1

  [[nodiscard]] std::int64_t positions() const;
  // Throws BadInput that names what was expected and found: a grid that the hosts cannot hold, no hosts, ...
  [[nodiscard]] RankMap map(const HostLayout& hosts, const MapOptions& options = {}) const;
};

// The same for any traffic between pairs: the ranks of `pairs` are the positions.
[[nodiscard]] RankMap map_pairs(int positions, std::span<const PairCount> pairs, const HostLayout& hosts,
                                const MapOptions& options = {});
[[nodiscard]] RankMap map_schedule(const Schedule& schedule, const HostLayout& hosts, const MapOptions& options = {});

// The cost of any assignment of ranks to positions. Throws BadInput unless `rank_at` names different ranks of `hosts`.
[[nodiscard]] MapCost map_cost(const Grid& grid, const HostLayout& hosts, std::span<const int> rank_at);

// The same schedule with other rank numbers: rank_at[r] does what rank r did. Transfers are sorted by sender, then by
// receiver, and keep their order otherwise. Throws BadInput unless `rank_at` is a permutation of the ranks.
[[nodiscard]] Schedule renumber(const Schedule& schedule, std::span<const int> rank_at);

}  // namespace onehop
