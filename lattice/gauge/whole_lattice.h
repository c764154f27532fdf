// Sites by their number in the whole lattice, and the worst link of all ranks.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "onehop/group.h"
#include "onehop/lattice/gauge.h"
#include "src/base/one_size.h"

namespace onehop::lattice::detail {

// Converts the lexicographic number of a site in the block that begins at `origin`.
inline std::uint64_t number_in_lattice(const Geometry& geometry, std::span<const std::int64_t> origin,
                                       std::int64_t site) {
  std::uint64_t number = 0;
  std::uint64_t stride = 1;
  for (std::size_t d = 0; d < origin.size(); ++d) {
    number += stride * static_cast<std::uint64_t>(origin[d] + site % geometry.block()[d]);
    site /= geometry.block()[d];
    stride *= static_cast<std::uint64_t>(geometry.spec().extents[d]);
  }
  return number;
}

struct WorstLink {
  double value = -1;
  std::uint64_t number = 0;  // of the site in the whole lattice
  std::int64_t direction = 0;
};

// The worst link over the ranks, of several that at the first site. Collective.
inline GaugeDeviation worst_over_ranks(const Group& group, const Geometry& geometry, WorstLink worst) {
  for (const auto& bytes : base::of_one_size(group.allgather(std::as_bytes(std::span(&worst, 1))), sizeof worst)) {
    WorstLink other;
    std::memcpy(&other, bytes.data(), sizeof other);
    if (other.value > worst.value || (other.value == worst.value && other.number < worst.number)) worst = other;
  }
  GaugeDeviation found{worst.value, {}, static_cast<int>(worst.direction)};
  for (const std::int64_t extent : geometry.spec().extents) {
    found.site.push_back(static_cast<std::int64_t>(worst.number % static_cast<std::uint64_t>(extent)));
    worst.number /= static_cast<std::uint64_t>(extent);
  }
  return found;
}

// For messages: "(1, 2, 3, 4) in direction 0".
inline std::string place_of(const GaugeDeviation& found) {
  std::string site;
  for (const std::int64_t x : found.site) site += (site.empty() ? "" : ", ") + std::to_string(x);
  return "(" + site + ") in direction " + std::to_string(found.direction);
}

}  // namespace onehop::lattice::detail
