#include "quantum/engine/permutation_gates.h"

#include <bit>

#include "quantum/engine/engine_diagonal.h"

namespace onehop::quantum {
namespace {

bool is(const double (&matrix)[4], double a, double b, double c, double d) {
  return matrix[0] == a && matrix[1] == b && matrix[2] == c && matrix[3] == d;
}

bool is_swap(const PairOperation& op) {
  return op.control_mask == 0 && std::popcount(op.x_mask) == 2 && op.z_mask == op.x_mask &&
         is(op.matrix[0], 1, 0, 0, 1) && is(op.matrix[1], 0, 1, 1, 0);
}

bool is_flip(const PairOperation& op) {
  return std::popcount(op.control_mask) <= 1 && op.z_mask == 0 && is(op.matrix[0], 0, 1, 1, 0);
}

}  // namespace

bool PermutationGates::takes(const PairOperation& op) { return is_swap(op) || is_flip(op); }

void PermutationGates::add(const PairOperation& op) { operations_.push_back(op); }

std::uint64_t PermutationGates::Map::of(std::uint64_t index) const {
  std::uint64_t source = 0;
  for (; index != 0; index &= index - 1) source ^= images[static_cast<std::size_t>(std::countr_zero(index))];
  return source;
}

// Each gate is its own inverse, so applying them from the last to the first leads back to the source of an amplitude.
PermutationGates::Map PermutationGates::source(std::uint64_t tile) const {
  Map map;
  for (int b = 0; b < std::popcount(tile); ++b) map.images.push_back(std::uint64_t{1} << b);
  for (auto op = operations_.rbegin(); op != operations_.rend(); ++op) {
    const std::uint64_t x = extract_bits(op->x_mask, tile);
    const auto moved = [&](std::uint64_t index) {
      if (is_swap(*op)) return std::popcount(index & x) == 1 ? index ^ x : index;
      const std::uint64_t control = extract_bits(op->control_mask & tile, tile);
      return control != 0 && (index & control) != 0 ? index ^ x : index;
    };
    for (std::uint64_t& image : map.images) image = moved(image);
    map.flip = moved(map.flip);
    for (Conditional& conditional : map.conditional) conditional.flip = moved(conditional.flip);
    if (is_swap(*op)) continue;
    if ((op->control_mask & ~tile) != 0) {
      map.conditional.push_back({op->control_mask, op->control_values, x});
    } else if (op->control_values == 0) {  // no control, or one that must be 0
      map.flip ^= x;
    }
  }
  return map;
}

}  // namespace onehop::quantum
