#include "onehop/machine/mapping.h"

#include "onehop/error.h"
#include "python/bindings/bindings.h"

using onehop::Grid;
using onehop::HostLayout;
using onehop::MapCandidate;
using onehop::MapCost;
using onehop::RankMap;

namespace {

using Integers = std::vector<std::int64_t>;

// The settings of the local search.
onehop::MapOptions search(bool refine, std::uint64_t seed, std::optional<std::int64_t> steps) {
  if (steps.value_or(0) < 0) throw onehop::BadInput("steps: expected 0 or more, found " + std::to_string(*steps));
  return {refine, seed, steps.value_or(-1)};
}

void bind_hosts(nb::module_& module) {
  nb::class_<HostLayout>(module, "HostLayout",
                         "Which host each rank runs on, and how the hosts are joined.\n\n"
                         "Parameters\n----------\n"
                         "host_of_rank : sequence of int\n    The host of each rank; hosts are numbered from 0.\n"
                         "groups : sequence of int\n    Hosts in a unit, units in a larger unit, and so on.\n"
                         "costs : sequence of int\n    Cost of a byte that leaves a host, a unit, ...; empty: 1.\n"
                         "torus : sequence of int\n    Extents of a torus of hosts; empty: no torus.")
      .def(
          "__init__",
          [](HostLayout* self, std::vector<int> host_of_rank, Integers groups, Integers costs, Integers torus) {
            HostLayout layout{std::move(host_of_rank), std::move(groups), std::move(costs), std::move(torus)};
            layout.check();
            new (self) HostLayout(std::move(layout));
          },
          "host_of_rank"_a, "groups"_a = Integers{}, "costs"_a = Integers{}, "torus"_a = Integers{})
      .def_static(
          "of_sizes", [](const Integers& sizes) { return HostLayout::of_sizes(sizes); }, "sizes"_a,
          "Return hosts that ranks fill one after the other; host h holds sizes[h] ranks.")
      .def_static("of_equal", &HostLayout::of_equal, "hosts"_a, "per_host"_a,
                  "Return hosts that ranks fill one after the other, with as many ranks on each.")
      .def_static("of_group", &HostLayout::of_group, "group"_a, nb::call_guard<nb::gil_scoped_release>(),
                  "Return the hosts of a group: ranks that share memory are on one host. Hosts are numbered in the "
                  "order of their first ranks. Collective.")
      .def_prop_ro("host_of_rank", tuple_of(&HostLayout::host_of_rank), "The host of each rank.")
      .def_prop_ro("hosts", &HostLayout::hosts, "Number of hosts.")
      .def_prop_ro("groups", tuple_of(&HostLayout::groups), "Hosts in a unit, units in a larger unit, and so on.")
      .def_prop_ro("costs", tuple_of(&HostLayout::costs), "Cost of a byte that leaves a host, a unit, ...; empty: 1.")
      .def_prop_ro("torus", tuple_of(&HostLayout::torus), "Extents of a torus of hosts; empty: no torus.");
}

void bind_map(nb::module_& module) {
  nb::class_<MapCost>(module, "MapCost", "What a map costs. An edge is an ordered pair of positions with traffic.")
      .def_ro("edges_between_hosts", &MapCost::edges_between_hosts, "Edges between different hosts.")
      .def_ro("busiest_host_edges", &MapCost::busiest_host_edges, "Most edges that leave or enter one host.")
      .def_ro("bytes_between_hosts", &MapCost::bytes_between_hosts, "Bytes between different hosts.")
      .def_ro("busiest_host_bytes", &MapCost::busiest_host_bytes, "Most bytes that leave or enter one host.")
      .def_ro("weighted_bytes", &MapCost::weighted_bytes, "Bytes between hosts, times the cost of their border.")
      .def_ro("byte_hops", &MapCost::byte_hops, "Bytes between hosts, times their hops on the torus.")
      .def_prop_ro("bytes_by_level", tuple_of(&MapCost::bytes_by_level),
                   "Bytes inside hosts, between hosts of a unit, between units, ...");
  nb::class_<MapCandidate>(module, "MapCandidate", "One of the maps that were compared.")
      .def_ro("name", &MapCandidate::name, "Name of the algorithm.")
      .def_ro("cost", &MapCandidate::cost, "Cost of its map.");
  nb::class_<RankMap>(module, "RankMap", "Which rank takes which position of a grid.")
      .def_prop_ro("rank_at", tuple_of(&RankMap::rank_at), "The rank at each position.")
      .def_prop_ro("position_of", tuple_of(&RankMap::position_of),
                   "The position of each rank; -1 for ranks that the grid does not need.")
      .def_prop_ro("host_at", tuple_of(&RankMap::host_at), "The host of each position.")
      .def_prop_ro("candidates", tuple_of(&RankMap::candidates), "The maps that were compared.")
      .def_prop_ro(
          "skipped",
          [](const RankMap& map) {
            nb::dict reasons;
            for (const auto& one : map.skipped) reasons[nb::str(one.name.c_str())] = one.reason;
            return reasons;
          },
          nb::sig("def skipped(self) -> dict[str, str]"), "Algorithms without a map, and why.")
      .def_ro("chosen", &RankMap::chosen, "Name of the chosen candidate.")
      .def_prop_ro(
          "lower_bound", [](const RankMap& map) { return map.lower_bound; },
          "No map has fewer bytes between hosts than this; None if unknown.")
      .def_ro("seconds", &RankMap::seconds, "Time to find the map.")
      .def_prop_ro("cost", &RankMap::cost, "Cost of the chosen map.");
}

}  // namespace

void bind_mapping(nb::module_& module) {
  bind_hosts(module);
  bind_map(module);
  module.def(
      "map_grid",
      [](Integers extents, const HostLayout& hosts, std::vector<bool> periodic, Integers bytes, bool refine,
         std::uint64_t seed, std::optional<std::int64_t> steps) {
        return Grid{std::move(extents), std::move(periodic), std::move(bytes)}.map(hosts, search(refine, seed, steps));
      },
      "extents"_a, "hosts"_a, "periodic"_a = std::vector<bool>{}, "bytes"_a = Integers{}, "refine"_a = true,
      "seed"_a = 1, "steps"_a = nb::none(), nb::call_guard<nb::gil_scoped_release>(),
      "Map a grid of ranks with messages between nearest neighbours to hosts. Raises BadInput.");
  module.def(
      "map_schedule",
      [](const onehop::Schedule& schedule, const HostLayout& hosts, bool refine, std::uint64_t seed,
         std::optional<std::int64_t> steps) {
        return onehop::map_schedule(schedule, hosts, search(refine, seed, steps));
      },
      "schedule"_a, "hosts"_a, "refine"_a = true, "seed"_a = 1, "steps"_a = nb::none(),
      nb::call_guard<nb::gil_scoped_release>(),
      "Map the ranks of a schedule to hosts by the bytes between pairs. Raises BadInput.");
  module.def(
      "map_cost",
      [](Integers extents, const HostLayout& hosts, const std::vector<int>& rank_at, std::vector<bool> periodic,
         Integers bytes) {
        return onehop::map_cost({std::move(extents), std::move(periodic), std::move(bytes)}, hosts, rank_at);
      },
      "extents"_a, "hosts"_a, "rank_at"_a, "periodic"_a = std::vector<bool>{}, "bytes"_a = Integers{},
      "Return the cost of a map of a grid: rank_at[p] is the rank at position p. Raises BadInput.");
  module.def(
      "renumber",
      [](const onehop::Schedule& schedule, const std::vector<int>& rank_at) {
        return onehop::renumber(schedule, rank_at);
      },
      "schedule"_a, "rank_at"_a,
      "Return the same schedule with other rank numbers: rank_at[r] does what rank r did. Raises BadInput unless "
      "`rank_at` is a permutation of the ranks.");
}
