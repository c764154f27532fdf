// The local search over maps, from several starts.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "machine/mapping/published.h"
#include "machine/mapping/traffic.h"

namespace onehop::detail {

// The order of maps: the better one is smaller.
[[nodiscard]] inline auto rank_of(const MapCost& cost) {
  return std::tuple(cost.weighted_bytes, cost.byte_hops, cost.busiest_host_bytes);
}

// Whether no map is better, as far as the bound says.
[[nodiscard]] bool cannot_improve(const MapCost& cost, std::optional<std::int64_t> bound, const HostDistance& distance);

// Whether a map has at most 1.05 times the bytes of the bound.
[[nodiscard]] bool near_bound(const MapCost& cost, std::optional<std::int64_t> bound);

struct MapSearch {
  const Traffic& traffic;
  const HostDistance& distance;
  Sizes sizes;
  const MapOptions& options;
  std::optional<std::int64_t> bound;

  // Every start is improved a little; the best two are then annealed. Returns a map that is better than all maps of the
  // cost `before`, without more bytes of the busiest host; empty if there is none.
  [[nodiscard]] HostAt improve(std::vector<HostAt> starts, const MapCost& before) const;

  // Anneals `start` longer, up to three times, until it is near the bound. The bytes of the busiest host stay at most
  // those of `published` the first time, and then rise by a smaller factor than that by which the bytes between hosts
  // fall, against `published`. Only for hosts that are equally far from each other, and up to
  // 16,384 ranks. Empty if nothing better is found.
  [[nodiscard]] HostAt improve_further(const HostAt& published, const HostAt& start) const;
};

}  // namespace onehop::detail
