// The logical topology of a communicator, and the division of a lattice by it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compat/qmp/state.h"
#include "onehop/error.h"

using onehop::BadInput;
using onehop::compat::checked_span;
using onehop::compat::guarded;
using namespace onehop::compat::qmp;

namespace {

QMP_status_t complain(QMP_status_t status, const std::string& why) {
  QMP_error("%s", why.c_str());
  return status;
}

}  // namespace

namespace onehop::compat::qmp {

Topology& topology_of(QMP_comm_t comm) {
  QMP_comm_struct& found = checked(comm);
  if (!found.topology) throw BadInput("expected a communicator with a logical topology; declare one first");
  return *found.topology;
}

QMP_status_t declare_topology(QMP_comm_t comm, std::span<const int> sizes, std::span<const int> map) {
  QMP_comm_struct& declared = checked(comm);
  if (declared.topology) throw BadInput("expected a communicator without a topology, found one that has it");
  if (sizes.empty()) return QMP_SUCCESS;
  int nodes = 1;
  for (const int size : sizes) {
    if (size < 1)
      return complain(QMP_INVALID_ARG, "logical topology: expected sizes of 1 or more, found " + std::to_string(size));
    if (__builtin_mul_overflow(nodes, size, &nodes)) {
      return complain(QMP_INVALID_ARG, "logical topology: expected fewer than 2^31 nodes, found more");
    }
  }
  if (nodes != declared.size()) {
    return complain(QMP_INVALID_ARG, "logical topology: expected a grid of " + std::to_string(declared.size()) +
                                         " nodes, found one of " + std::to_string(nodes));
  }
  Topology topology{{sizes.begin(), sizes.end()}, {map.begin(), map.end()}, std::vector<int>(sizes.size())};
  if (map.empty()) {
    topology.map.resize(sizes.size());
    std::iota(topology.map.begin(), topology.map.end(), 0);
  }
  std::vector<int> axes = topology.map;
  std::ranges::sort(axes);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes.size() != sizes.size() || axes[i] != static_cast<int>(i)) {
      throw BadInput("expected a map that names each of " + std::to_string(sizes.size()) + " axes once");
    }
  }
  topology.coordinates(declared.me, topology.mine.data());
  declared.topology = std::move(topology);
  return QMP_SUCCESS;
}

}  // namespace onehop::compat::qmp

namespace {

// More than any lattice has; nothing behind them is read.
constexpr int most_dims = 64;

QMP_status_t declare_grid(QMP_comm_t comm, const int* dims, int ndim, const int* map, int mapdim) {
  if (map == nullptr) mapdim = 0;
  for (const int count : {ndim, mapdim}) {
    if (count >= 0 && count <= most_dims) continue;
    return complain(QMP_INVALID_ARG, "logical topology: expected 0 to " + std::to_string(most_dims) +
                                         " dimensions, found " + std::to_string(count));
  }
  return declare_topology(comm, checked_span(dims, ndim), checked_span(map, mapdim));
}

// Cuts a lattice for `nodes` nodes: prime by prime, the largest first, the axis with the longest pieces that it
// divides; among equals one that is cut already.
std::optional<std::vector<int>> cut(std::span<const int> lattice, int nodes) {
  std::vector<int> pieces(lattice.begin(), lattice.end());
  std::vector<int> cuts(lattice.size(), 1);
  std::vector<int> primes;
  for (int prime = 2; nodes > 1; nodes % prime == 0 ? static_cast<void>(nodes /= prime) : static_cast<void>(++prime)) {
    if (nodes % prime == 0) primes.push_back(prime);
  }
  for (auto prime = primes.rbegin(); prime != primes.rend(); ++prime) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i] % *prime != 0) continue;
      if (!best || pieces[i] > pieces[*best] || (pieces[i] == pieces[*best] && cuts[*best] == 1)) best = i;
    }
    if (!best) return std::nullopt;
    pieces[*best] /= *prime;
    cuts[*best] *= *prime;
  }
  return cuts;
}

QMP_status_t lay_out(const int* dimensions, int count) {
  if (count > most_dims)
    return complain(QMP_INVALID_ARG, "layout: expected at most " + std::to_string(most_dims) + " dimensions, found " +
                                         std::to_string(count));
  const std::span<const int> lattice = checked_span(dimensions, count);
  Qmp& state = qmp();
  QMP_comm_struct& standard = checked(state.standard);
  std::int64_t sites = 1;
  for (const int size : lattice) {
    if (size < 1)
      return complain(QMP_INVALID_ARG, "layout: expected sizes of 1 or more, found " + std::to_string(size));
    if (__builtin_mul_overflow(sites, std::int64_t{size}, &sites)) {
      return complain(QMP_INVALID_ARG, "layout: expected fewer than 2^63 sites, found more");
    }
  }
  if (const auto& of_job = checked(state.job).topology;
      state.interconnect != QMP_SWITCH && !standard.topology && of_job) {
    declare_topology(state.standard, of_job->sizes, state.arguments.logical_map);
  }
  if (!standard.topology) {
    const auto cuts = cut(lattice, standard.size());
    if (!cuts) {
      return complain(QMP_ERROR, "layout: expected a lattice that " + std::to_string(standard.size()) +
                                     " nodes can share equally, found one that they cannot");
    }
    const QMP_status_t status = declare_topology(state.standard, *cuts, state.arguments.logical_map);
    if (status != QMP_SUCCESS) return status;
  }
  const std::vector<int>& sizes = standard.topology->sizes;
  if (lattice.size() < sizes.size()) return complain(QMP_ERROR, "layout: the lattice has fewer axes than the topology");
  std::vector<int> subgrid(lattice.begin(), lattice.end());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (lattice[i] % sizes[i] != 0) return complain(QMP_ERROR, "layout: the topology does not divide the lattice");
    subgrid[i] /= sizes[i];
    sites /= sizes[i];
  }
  if (!std::in_range<int>(sites)) {
    return complain(QMP_INVALID_ARG,
                    "layout: expected fewer than 2^31 sites on a node, found " + std::to_string(sites));
  }
  state.subgrid = std::move(subgrid);
  return QMP_SUCCESS;
}

}  // namespace

ONEHOP_COMPAT_FUNCTION(QMP_status_t, QMP_comm_declare_logical_topology_map,
                       (QMP_comm_t comm, const int dims[], int ndim, const int map[], int mapdim),
                       declare_grid(comm, dims, ndim, map, mapdim))
ONEHOP_COMPAT_API QMP_status_t QMP_comm_declare_logical_topology(QMP_comm_t comm, const int dims[], int ndim) {
  return QMP_comm_declare_logical_topology_map(comm, dims, ndim, nullptr, 0);
}
QMP_OF_DEFAULT(QMP_status_t, declare_logical_topology_map, (const int dims[], int ndim, const int map[], int mapdim),
               dims, ndim, map, mapdim)
ONEHOP_COMPAT_API QMP_status_t QMP_declare_logical_topology(const int dims[], int ndim) {
  return guarded(__func__, [&] {
    const std::vector<int>& map = qmp().arguments.logical_map;
    return declare_grid(qmp().standard, dims, ndim, map.data(), static_cast<int>(map.size()));
  });
}
ONEHOP_COMPAT_FUNCTION(QMP_bool_t, QMP_comm_logical_topology_is_declared, (QMP_comm_t comm),
                       checked(comm).topology ? QMP_TRUE : QMP_FALSE)
QMP_OF_DEFAULT(QMP_bool_t, logical_topology_is_declared, ())
ONEHOP_COMPAT_API int QMP_comm_get_logical_number_of_dimensions(QMP_comm_t comm) {
  return guarded(__func__, [&] {
    const auto& topology = checked(comm).topology;
    return topology ? static_cast<int>(topology->sizes.size()) : 0;
  });
}
QMP_OF_DEFAULT(int, get_logical_number_of_dimensions, ())
ONEHOP_COMPAT_API const int* QMP_comm_get_logical_dimensions(QMP_comm_t comm) {
  return guarded(__func__, [&]() -> const int* {
    const auto& topology = checked(comm).topology;
    return topology ? topology->sizes.data() : nullptr;
  });
}
QMP_OF_DEFAULT(const int*, get_logical_dimensions, ())
ONEHOP_COMPAT_API const int* QMP_comm_get_logical_coordinates(QMP_comm_t comm) {
  return guarded(__func__, [&]() -> const int* { return topology_of(comm).mine.data(); });
}
QMP_OF_DEFAULT(const int*, get_logical_coordinates, ())
ONEHOP_COMPAT_API void QMP_comm_get_logical_coordinates_from2(QMP_comm_t comm, int coords[], int node) {
  guarded(__func__, [&] {
    const Topology& topology = topology_of(comm);
    topology.coordinates(node, checked_span(coords, topology.sizes.size()).data());
  });
}
ONEHOP_COMPAT_API int* QMP_comm_get_logical_coordinates_from(QMP_comm_t comm, int node) {
  auto* coords = static_cast<int*>(
      std::calloc(static_cast<std::size_t>(QMP_comm_get_logical_number_of_dimensions(comm)) + 1, sizeof(int)));
  QMP_comm_get_logical_coordinates_from2(comm, coords, node);
  return coords;
}
QMP_OF_DEFAULT(int*, get_logical_coordinates_from, (int node), node)
ONEHOP_COMPAT_API void QMP_get_logical_coordinates_from2(int coords[], int node) {
  QMP_comm_get_logical_coordinates_from2(QMP_comm_get_default(), coords, node);
}
ONEHOP_COMPAT_API int QMP_comm_get_node_number_from(QMP_comm_t comm, const int coordinates[]) {
  return guarded(__func__, [&] {
    const Topology& topology = topology_of(comm);
    return topology.node(checked_span(coordinates, topology.sizes.size()).data());
  });
}
QMP_OF_DEFAULT(int, get_node_number_from, (const int coordinates[]), coordinates)
ONEHOP_COMPAT_FUNCTION(QMP_status_t, QMP_layout_grid, (const int dimensions[], int ndims), lay_out(dimensions, ndims))
ONEHOP_COMPAT_API const int* QMP_get_subgrid_dimensions() {
  return guarded(__func__, []() -> const int* { return qmp().subgrid.data(); });
}
ONEHOP_COMPAT_API int QMP_get_number_of_subgrid_sites() {
  return guarded(__func__, [] {
    const std::vector<int>& sizes = qmp().subgrid;
    return sizes.empty() ? 0 : std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
  });
}
