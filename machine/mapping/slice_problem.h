// The grid of a slice bound, cut into slices of slices, and the prices of slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace onehop::detail {

// Level k cuts sets of columns' positions along one dimension into slices of up to `area` positions, which are the sets
// of level k - 1; a slice of level 0 is one position.
struct SliceLevel {
  std::int64_t extent = 1;
  std::int64_t bytes = 0;  // of a message along the dimension, in units of the greatest common divisor of all
  bool periodic = false;
  std::int64_t area = 1;     // positions of the grid in a slice
  std::int64_t rows = 1;     // most positions of a host in a slice
  std::int64_t columns = 1;  // most positions of a host in all slices of a set
  std::int64_t sets = 1;     // of the grid
  std::size_t first = 0;     // of the level's prices

  // Slices at equal distances from the ends are of one kind, and have the same prices; all slices of a periodic
  // dimension are.
  [[nodiscard]] std::int64_t kind(std::int64_t slice) const {
    if (periodic) return 0;
    return slice < extent - 1 - slice ? slice : extent - 1 - slice;
  }
  [[nodiscard]] std::int64_t kinds() const { return periodic ? 1 : (extent + 1) / 2; }
  [[nodiscard]] std::int64_t slices_of(std::int64_t kind) const {  // in the whole grid
    if (periodic) return extent * sets;
    return (kind == extent - 1 - kind ? 1 : 2) * sets;
  }
};

// Hosts with the same prices.
struct HostClass {
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes;  // (positions, hosts), ascending
};

struct SliceProblem {
  std::vector<SliceLevel> levels;
  std::vector<HostClass> classes;
  std::int64_t hosts = 0;
  std::int64_t parts = 1;  // prices are integers in units / parts
  std::size_t prices = 0;  // of all levels, kinds, classes and numbers of positions

  // The first of the prices of 0, 1, ..., rows positions that a host of a class has in a slice of a kind.
  [[nodiscard]] std::size_t price_at(const SliceLevel& level, std::int64_t kind, std::size_t host_class) const {
    const auto place = static_cast<std::size_t>(kind) * classes.size() + host_class;
    return level.first + place * static_cast<std::size_t>(level.rows + 1);
  }
};

using Prices = std::span<const float>;  // integers; 0 for no positions

}  // namespace onehop::detail
