#include "src/schedule/patterns/halo_checks.h"

#include <algorithm>
#include <string>

#include "onehop/error.h"
#include "src/base/checked.h"
#include "src/base/text.h"

namespace onehop {

namespace {

void check_dims(const HaloSpec& spec) {
  const std::size_t dims = spec.extents.size();
  if (dims < 1 || dims > max_halo_dims) {
    throw BadInput("halo: expected 1 to " + std::to_string(max_halo_dims) + " dimensions, found " +
                   base::counted(dims, "extent"));
  }
  const auto check = [&](std::size_t found, const char* name) {
    if (found == dims) return;
    throw BadInput("halo: expected " + std::string(name) + " for each of the " + base::counted(dims, "dimension") +
                   ", found " + std::to_string(found));
  };
  check(spec.grid.size(), "ranks (grid)");
  check(spec.widths.size(), "widths");
  check(spec.periodic.size(), "periodic");
}

void check_types(const HaloSpec& spec) {
  if (!spec.types.empty() && spec.types.size() != spec.element_bytes.size()) {
    throw BadInput("halo: expected a type for each of " + base::counted(spec.element_bytes.size(), "field") +
                   ", or none, found " + std::to_string(spec.types.size()));
  }
  for (std::size_t field = 0; field < spec.element_bytes.size(); ++field) {
    const ElementType type = spec.types.empty() ? ElementType::bytes : spec.types[field];
    if (!takes(spec.codec, type)) {
      throw BadInput("halo: codec " + std::string(to_string(spec.codec)) +
                     " needs fields of float32, float64, float16 or bfloat16, found " + std::string(to_string(type)) +
                     " in field " + std::to_string(field));
    }
    const std::int64_t size = bytes_of(type);
    if (size != 0 && spec.element_bytes[field] % size != 0) {
      throw BadInput("halo: expected element_bytes of a multiple of " + std::to_string(size) + " for " +
                     std::string(to_string(type)) + ", found " + std::to_string(spec.element_bytes[field]));
    }
  }
}

}  // namespace

int check_halo(const HaloSpec& spec) {
  check_dims(spec);
  std::int64_t ranks = 1;
  const auto complain = [](std::size_t d, const std::string& expected, std::int64_t found) {
    throw BadInput("halo: expected " + expected + " in dimension " + std::to_string(d) + ", found " +
                   std::to_string(found));
  };
  for (std::size_t d = 0; d < spec.extents.size(); ++d) {
    const auto [below, above] = spec.widths[d];
    if (spec.extents[d] < 0) complain(d, "an extent of 0 or more", spec.extents[d]);
    if (spec.grid[d] < 1) complain(d, "1 rank or more", spec.grid[d]);
    if (below < 0 || above < 0) complain(d, "widths of 0 or more", std::min(below, above));
    // Position numbers in the local array, and in the global array with ghosts around it, must not overflow.
    (void)detail::checked_add(spec.extents[d], detail::checked_add(below, above, "a halo's width"), "a halo's extent");
    ranks *= spec.grid[d];
    if (ranks > max_ranks) complain(d, "a grid of at most " + std::to_string(max_ranks) + " ranks up to and", ranks);
  }
  if (spec.element_bytes.empty()) throw BadInput("halo: expected element_bytes for one field or more, found none");
  for (const std::int64_t bytes : spec.element_bytes) {
    if (bytes < 1) throw BadInput("halo: expected element_bytes of 1 or more, found " + std::to_string(bytes));
  }
  check_types(spec);
  return static_cast<int>(ranks);
}

std::vector<int> halo_positions(const std::vector<int>& permutation, int size) {
  if (std::ssize(permutation) != size) {
    throw BadInput("halo: expected rank_at with a rank for each of the " + base::counted(size, "position") +
                   " of the grid, found " + std::to_string(permutation.size()));
  }
  std::vector<int> inverse(permutation.size(), -1);
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    const int value = permutation[i];
    if (value < 0 || value >= size || inverse[static_cast<std::size_t>(value)] >= 0) {
      throw BadInput("halo: expected rank_at as a permutation of the ranks 0 to " + std::to_string(size - 1) +
                     ", found " + std::to_string(value) + " at position " + std::to_string(i) +
                     (value < 0 || value >= size ? "" : ", for the second time"));
    }
    inverse[static_cast<std::size_t>(value)] = static_cast<int>(i);
  }
  return inverse;
}

}  // namespace onehop
