// Checks of a geometry, and its error messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "onehop/error.h"

namespace onehop::lattice::detail {

inline constexpr int max_lanes = 64;

template <class Number>
[[nodiscard]] std::string text(Number number) {
  return std::to_string(number);
}

template <class Numbers>
[[nodiscard]] std::string joined(const Numbers& numbers) {
  std::string result;
  for (const auto number : numbers) result += (result.empty() ? "" : " x ") + text(number);
  return result;
}

[[noreturn]] inline void complain(const std::string& what) { throw BadInput("lattice geometry: " + what); }

// The smallest number of sites of a block in a direction that is cut: all sites that a neighbour needs must be on one
// rank.
[[nodiscard]] inline std::int64_t thinnest(int width) { return std::max(2, width); }

// Throws BadInput unless there are 1 to 4 extents of 1 or more, and at most 2^40 sites.
void check_extents(std::span<const std::int64_t> extents);

}  // namespace onehop::lattice::detail
