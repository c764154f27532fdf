// Decomposes operations into the engine's own few forms. Every one-bit gate becomes a diagonal, a real rotation and a
// diagonal. Diagonals become conditional factors, so that the remaining arithmetic is real and diagonals can merge with
// their neighbours.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/quantum/engine.h"

namespace onehop::quantum {

// Multiplies by `factor` the amplitudes i where all bits of `mask` have the values `want` (all_of),
// or where an odd number of the bits of `mask` is set (odd).
struct Phase {
  enum class When : std::uint8_t { all_of, odd };
  When when = When::all_of;
  std::uint64_t mask = 0;
  std::uint64_t want = 0;
  std::complex<double> factor = 1;
  // Of an operation that varies: the index of this phase in Items::phases, for `refresh`. -1: the factor is fixed.
  int source = -1;
};

// a' = a - tangent b, b' = b + tangent a for the two values of a bit. The factor `cosine` is left to the next
// multiplication.
struct Butterfly {
  int bit = 0;
  double tangent = 0;
  double cosine = 1;
  int source = -1;  // the index in Items::butterflies
};

// A real 2x2 matrix on every pair (i, i ^ x_mask), where i has a zero at the top bit of x_mask: matrix[p], row-major, p
// the parity of i & z_mask. Pairs whose controls do not hold are unchanged.
struct PairOperation {
  std::uint64_t x_mask = 0;
  std::uint64_t z_mask = 0;
  std::uint64_t control_mask = 0;
  std::uint64_t control_values = 0;
  double matrix[2][4] = {};
};

// A matrix on at most `max_dense_bits` bits, bits[0] the least significant one of its index; no control is one of the
// lowest bits.
struct Dense {
  std::vector<int> bits;
  std::uint64_t control_mask = 0;
  std::uint64_t control_values = 0;
  std::vector<std::complex<double>> matrix;
};

// A derivative: `factor` times Im <bra| Q P |ket> is added to the result with the number `result`. P is the Pauli
// string of the masks, Q projects on the amplitudes whose controls hold.
struct Probe {
  std::uint64_t x_mask = 0;
  std::uint64_t z_mask = 0;
  std::uint64_t control_mask = 0;
  std::uint64_t control_values = 0;
  double factor = 1;
  int result = -1;
};

// The largest tangent of a rotation that varies, as a butterfly. A layer of up to 18 such rotations stays within the
// range of single precision (engine_tile_builder.h).
inline constexpr double default_steepest_varying = 100;
inline constexpr int max_dense_bits = 5;
inline constexpr int max_lane_bits = 4;  // bits of an index inside a vector, at most

enum class ItemKind : std::uint8_t {
  phase,
  butterfly,
  pair,
  dense,
  probe,
  table,   // a diagonal that is not a product of few phases, as an index of an operation
  direct,  // an operation that does not fit a tile, as an index of an operation
};

struct Item {
  ItemKind kind = ItemKind::phase;
  std::uint64_t mixed = 0;    // bits that must be in the tile
  std::uint64_t watched = 0;  // bits whose value matters but does not change
  std::uint32_t index = 0;    // into the list of its kind, or into the operations
  std::uint32_t gates = 0;  // operations whose first item this is; operations without an item count with the next item
  friend bool operator==(const Item&, const Item&) = default;
};

// The bits of items that wait. A later item may overtake them only if it commutes with all of them.
struct Skipped {
  std::uint64_t mixed = 0;    // no later item may use these bits
  std::uint64_t watched = 0;  // later items may watch these bits, but not mix them

  [[nodiscard]] bool allows(const Item& item) const {
    return (item.mixed & (mixed | watched)) == 0 && (item.watched & mixed) == 0;
  }
  void add(const Item& item) {
    mixed |= item.mixed;
    watched |= item.watched;
  }
};

// The items of an operation that varies: where the numbers are that depend on its angle.
struct VaryingItems {
  enum class Form : std::uint8_t {
    phase,   // phases[phase]
    parity,  // phases[phase] for all amplitudes, phases[phase + 1] for those of odd parity
    turn,    // butterflies[butterfly], phases[phase] for the sign of its cosine
  };
  Form form = Form::phase;
  std::uint32_t operation = 0;
  std::uint32_t phase = 0;
  std::uint32_t butterfly = 0;
};

struct Items {
  std::vector<Item> order;
  std::vector<Phase> phases;
  std::vector<Butterfly> butterflies;
  std::vector<PairOperation> pairs;
  std::vector<Dense> dense;
  std::vector<Probe> probes;  // commute with the operations with which the rotation about their string commutes
  std::vector<VaryingItems> varying;
  double steepest_varying = default_steepest_varying;
  bool refreshable = true;  // whether `varying` has all items that depend on angles that vary
};

// Decomposes operations on an index of `bits` bits. `max_mixed`: the number of bits above the lowest `low_bits` that a
// tile can hold. `matrices`: keep general two-bit gates as matrices.
[[nodiscard]] Items decompose_gates(std::span<const LocalOperation> operations, int bits, int low_bits, int max_mixed,
                                    bool matrices = true, double steepest_varying = default_steepest_varying);

// Gives the items the angles that the operations have now. Returns false, with some items changed, if the items of
// other angles have another form, so that the operations must be decomposed again.
[[nodiscard]] bool refresh(Items& items, std::span<const LocalOperation> operations);

}  // namespace onehop::quantum
