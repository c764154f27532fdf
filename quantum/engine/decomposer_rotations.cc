// Rotations about Pauli strings, by fixed angles and by angles that vary.
#include "quantum/engine/decomposer.h"

#include <bit>
#include <cmath>

namespace onehop::quantum {
namespace {

constexpr int max_controlled_parity_bits = 6;

}  // namespace

void Decomposer::add_rotation(const LocalOperation& op, const GateControls& controls, std::uint32_t index) {
  if (op.x_mask == 0) return add_parity(op, controls, index);
  if (!fits_tile(op.x_mask)) {
    return by_operation(ItemKind::direct, op.x_mask, op.z_mask | op.control_mask, index);
  }
  const double cosine = std::cos(op.angle / 2);
  const double sine = std::sin(op.angle / 2);
  const int top = static_cast<int>(std::bit_width(op.x_mask)) - 1;
  if (op.x_mask == bit_of(top) && (op.z_mask & ~op.x_mask) == 0 && controls.mask == 0) {
    const bool is_y = op.z_mask != 0;
    LocalOperation gate{.kind = LocalKind::matrix, .bits = {top}};
    gate.values = {cosine, is_y ? Number(-sine) : Number(0, -sine), is_y ? Number(sine) : Number(0, -sine), cosine};
    return add_matrix(gate, controls, index);
  }
  // P|i> = w(i)|i ^ x> with w(i) = i^ys (-1)^parity(i & z), so amplitude i contributes -i sine w(i) to its partner.
  // This is real for an odd number of Y. Otherwise an S before and its inverse after, on the top bit of x, make it
  // real.
  const int ys = std::popcount(op.x_mask & op.z_mask);
  const bool odd = ys % 2 != 0;
  const double sign = odd ? (ys % 4 == 1 ? 1 : -1) : (ys % 4 == 0 ? 1 : -1);
  PairOperation rotation{op.x_mask, op.z_mask, controls.mask, controls.values, {}};
  for (int p = 0; p < 2; ++p) {
    const double from_first = sign * (p == 0 ? 1 : -1);         // of i, whose parity is p
    const double from_second = odd ? -from_first : from_first;  // of its partner
    auto& m = rotation.matrix[p];
    m[0] = m[3] = cosine;
    m[1] = odd ? sine * from_second : -sine * from_second;
    m[2] = sine * from_first;
  }
  flush_all(op.x_mask | op.z_mask | controls.mask);
  if (!odd) phase_on(bit_of(top), bit_of(top), {}, Number(0, 1));
  pair(rotation, index);
  if (!odd) phase_on(bit_of(top), bit_of(top), {}, Number(0, -1));
}

void Decomposer::add_parity(const LocalOperation& op, const GateControls& controls, std::uint32_t index) {
  const Number even = std::polar(1.0, -op.angle / 2);
  flush_all(op.z_mask | controls.mask);
  if (controls.mask == 0 || op.z_mask == 0) {
    phase_on(0, 0, controls, even);
    if (op.z_mask != 0) push_phase({Phase::When::odd, op.z_mask, 0, std::conj(even) / even});
    return;
  }
  if (std::popcount(op.z_mask) > max_controlled_parity_bits) {
    return by_operation(ItemKind::direct, op.z_mask, controls.mask, index);
  }
  std::vector<int> bits;
  for (std::uint64_t z = op.z_mask; z != 0; z &= z - 1) bits.push_back(std::countr_zero(z));
  std::vector<Number> values(std::size_t{1} << bits.size());
  for (std::size_t v = 0; v < values.size(); ++v) values[v] = std::popcount(v) % 2 == 0 ? even : std::conj(even);
  factor_into_phases(bits, values, controls);
}

void Decomposer::add_varying_rotation(const LocalOperation& op, const GateControls& controls, std::uint32_t index) {
  flush_all(op.x_mask | op.z_mask | controls.mask);
  if (op.x_mask == 0 && controls.mask == 0) {
    add_probe(op, 0, op.z_mask);
    varying(VaryingItems::Form::parity, index);
    const Number even = even_factor(op);
    push_varying_phase({Phase::When::all_of, 0, 0, even});
    push_varying_phase({Phase::When::odd, op.z_mask, 0, std::conj(even) / even});
    return;
  }
  const bool one_bit = std::has_single_bit(op.x_mask) && (op.z_mask & ~op.x_mask) == 0 && controls.mask == 0;
  const double tangent = std::tan(op.angle / 2);
  if (!one_bit || std::abs(tangent) > items_.steepest_varying) {
    items_.refreshable = false;
    if (fits_tile(op.x_mask)) add_probe(op, op.x_mask, op.z_mask);
    return add_rotation(op, controls, index);
  }
  // A rotation about X is one about Y between S and its inverse.
  const int bit = std::countr_zero(op.x_mask);
  const bool is_y = op.z_mask != 0;
  if (!is_y) push_any_phase({Phase::When::all_of, op.x_mask, op.x_mask, Number(0, 1)});
  add_probe(op, op.x_mask, op.x_mask);
  varying(VaryingItems::Form::turn, index);
  push_butterfly(bit, tangent);
  push_varying_phase({Phase::When::all_of, 0, 0, sign_of_cosine(op)});
  if (!is_y) push_any_phase({Phase::When::all_of, op.x_mask, op.x_mask, Number(0, -1)});
}

}  // namespace onehop::quantum
