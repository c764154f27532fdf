#include "quantum/engine/big_tiles.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "onehop/error.h"
#include "quantum/engine/engine_diagonal.h"
#include "quantum/engine/engine_encoded.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

std::uint64_t low_mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

// An operation with the bits that it mixes, and those on whose values it depends.
struct Grouped {
  LocalOperation operation;
  std::uint64_t mixed = 0;
  std::uint64_t watched = 0;
};

Grouped grouped(const LocalOperation& op) {
  Grouped result{op, op.x_mask, (op.z_mask & ~op.x_mask) | op.control_mask};
  for (const int bit : op.bits) {
    (op.kind == LocalKind::diagonal ? result.watched : result.mixed) |= std::uint64_t{1} << bit;
  }
  return result;
}

// What was passed over, which later operations must commute with.
struct PassedOver {
  std::uint64_t mixed = 0;
  std::uint64_t touched = 0;
  [[nodiscard]] bool allows(const Grouped& one) const {
    return ((mixed & (one.mixed | one.watched)) | (touched & one.mixed)) == 0;
  }
  void add(const Grouped& one) {
    mixed |= one.mixed;
    touched |= one.mixed | one.watched;
  }
};

// The number of operations that a tile takes if it grows by what they mix.
int grow(std::span<const Grouped> rest, std::uint64_t& tile, int tile_bits) {
  PassedOver passed;
  int taken = 0;
  for (const Grouped& one : rest) {
    const bool fits = std::popcount(tile | one.mixed) <= tile_bits;
    if (fits && passed.allows(one)) {
      tile |= one.mixed;
      ++taken;
    } else {
      passed.add(one);
    }
  }
  return taken;
}

std::uint64_t best_tile(std::span<const Grouped> rest, int bits, int tile_bits, int low_bits) {
  const int high = tile_bits - low_bits;
  std::uint64_t best = low_mask(low_bits);
  int most = grow(rest, best, tile_bits);
  for (int first = low_bits; first + high <= bits; ++first) {
    std::uint64_t tile = low_mask(low_bits) | low_mask(high) << first;
    const int taken = grow(rest, tile, tile_bits);
    if (taken > most) most = taken, best = tile;
  }
  for (int bit = 0; std::popcount(best) < tile_bits; ++bit) best |= std::uint64_t{1} << bit;
  return best;
}

std::optional<LocalOperation> on_tile(const LocalOperation& op, std::uint64_t tile, std::uint64_t outside) {
  if (((outside ^ op.control_values) & op.control_mask & ~tile) != 0) return std::nullopt;
  LocalOperation result = op;
  result.control_mask = extract_bits(op.control_mask, tile);
  result.control_values = extract_bits(op.control_values, tile);
  result.x_mask = extract_bits(op.x_mask, tile);
  result.z_mask = extract_bits(op.z_mask, tile);
  if (std::popcount(op.z_mask & outside & ~tile) % 2 != 0) result.angle = -op.angle;
  result.bits.clear();
  std::size_t fixed = 0;  // the bits of a diagonal's index that have values here
  std::vector<std::size_t> places;
  for (std::size_t b = 0; b < op.bits.size(); ++b) {
    const std::uint64_t bit = std::uint64_t{1} << op.bits[b];
    if ((tile & bit) != 0) {
      result.bits.push_back(std::popcount(tile & (bit - 1)));
      places.push_back(b);
    } else if ((outside & bit) != 0) {
      fixed |= std::size_t{1} << b;
    }
  }
  if (op.kind != LocalKind::diagonal) return result;
  result.values.resize(std::size_t{1} << places.size());
  for (std::size_t v = 0; v < result.values.size(); ++v) {
    std::size_t index = fixed;
    for (std::size_t i = 0; i < places.size(); ++i) index |= (v >> i & 1U) << places[i];
    result.values[v] = op.values[index];
  }
  return result;
}

std::vector<Grouped> all_grouped(std::span<const LocalOperation> operations, int tile_bits, int low_bits) {
  std::vector<Grouped> all;
  for (const LocalOperation& op : operations) {
    std::vector<LocalOperation> parts{op};
    const auto high = std::popcount(grouped(op).mixed & ~low_mask(low_bits));
    if (high > tile_bits - low_bits) {
      if (op.kind != LocalKind::pauli_rotation) {
        throw BadInput("expected operations that mix at most " + base::counted(tile_bits - low_bits, "qubit") +
                       " in a state on disk, found one on " + std::to_string(high) + "; give the state more memory");
      }
      parts.clear();
      add_narrowed(parts, op);
      for (LocalOperation& part : parts) part.source = op.source;
    }
    for (const LocalOperation& part : parts) all.push_back(grouped(part));
  }
  return all;
}

BigPass take_pass(std::vector<Grouped>& rest, int bits, int tile_bits, int low_bits) {
  BigPass pass;
  pass.tile = best_tile(rest, bits, tile_bits, low_bits);
  PassedOver passed;
  std::vector<Grouped> later;
  for (Grouped& one : rest) {
    if ((one.mixed & ~pass.tile) == 0 && passed.allows(one)) {
      pass.operations.push_back(std::move(one.operation));
    } else {
      passed.add(one);
      later.push_back(std::move(one));
    }
  }
  rest = std::move(later);
  return pass;
}

}  // namespace

std::vector<BigPass> make_big_passes(std::span<const LocalOperation> operations, int bits, int tile_bits,
                                     int low_bits) {
  std::vector<Grouped> rest = all_grouped(operations, tile_bits, low_bits);
  std::vector<BigPass> passes;
  while (!rest.empty()) passes.push_back(take_pass(rest, bits, tile_bits, low_bits));
  return passes;
}

BigPass take_big_pass(std::vector<LocalOperation>& operations, int bits, int tile_bits, int low_bits) {
  std::vector<Grouped> rest = all_grouped(operations, tile_bits, low_bits);
  BigPass pass = take_pass(rest, bits, tile_bits, low_bits);
  operations.clear();
  for (Grouped& one : rest) operations.push_back(std::move(one.operation));
  return pass;
}

std::vector<LocalOperation> within(const BigPass& pass, std::uint64_t outside) {
  std::vector<LocalOperation> result;
  for (const LocalOperation& op : pass.operations) {
    if (auto one = on_tile(op, pass.tile, outside)) result.push_back(std::move(*one));
  }
  return result;
}

}  // namespace onehop::quantum
