#include "quantum/engine/decomposer.h"

#include <bit>
#include <utility>

namespace onehop::quantum {

Decomposer::Decomposer(int bits, int low_bits, int max_mixed, bool matrices, double steepest_varying)
    : matrices_(matrices),
      low_bits_(low_bits),
      low_mask_(bit_of(low_bits) - 1),
      max_mixed_(max_mixed),
      waiting_(static_cast<std::size_t>(bits)),
      waiting_gates_(waiting_.size()) {
  items_.steepest_varying = steepest_varying;
}

void Decomposer::add(const LocalOperation& op, std::uint32_t index) {
  ++gates_;
  const GateControls controls{op.control_mask, op.control_values};
  switch (op.kind) {
    case LocalKind::matrix:
      return add_matrix(op, controls, index);
    case LocalKind::diagonal:
      if (op.varies) return add_varying_phase(op, controls, index);
      return add_diagonal(op.bits, op.values, controls, index);
    case LocalKind::swap: {
      const std::uint64_t both = bit_of(op.bits[0]) | bit_of(op.bits[1]);
      return pair({both, both, op.control_mask, op.control_values, {{1, 0, 0, 1}, {0, 1, 1, 0}}}, index);
    }
    case LocalKind::pauli_rotation:
      return op.varies ? add_varying_rotation(op, controls, index) : add_rotation(op, controls, index);
  }
}

Items Decomposer::finish() {
  for (std::size_t bit = 0; bit < waiting_.size(); ++bit) flush(static_cast<int>(bit));
  if (!items_.order.empty()) items_.order.back().gates += gates_;
  return std::move(items_);
}

void Decomposer::flush_all(std::uint64_t mask) {
  for (; mask != 0; mask &= mask - 1) flush(std::countr_zero(mask));
}

void Decomposer::flush(int bit) {
  auto& waiting = waiting_[static_cast<std::size_t>(bit)];
  if (!waiting) return;
  const Matrix2 m = *waiting;
  waiting.reset();
  gates_ += std::exchange(waiting_gates_[static_cast<std::size_t>(bit)], 0);
  one_bit(bit, m, {});
}

bool Decomposer::fits_tile(std::uint64_t mixed) const { return std::popcount(mixed & ~low_mask_) <= max_mixed_; }

void Decomposer::pair(const PairOperation& operation, std::uint32_t index) {
  if (!fits_tile(operation.x_mask)) {
    return by_operation(ItemKind::direct, operation.x_mask, operation.z_mask | operation.control_mask, index);
  }
  push_pair(operation);
}

void Decomposer::push_pair(const PairOperation& operation) {
  flush_all(operation.control_mask | operation.x_mask | operation.z_mask);
  item(ItemKind::pair, operation.x_mask, (operation.z_mask | operation.control_mask) & ~operation.x_mask,
       items_.pairs.size());
  items_.pairs.push_back(operation);
}

void Decomposer::push_butterfly(int bit, double tangent) {
  item(ItemKind::butterfly, bit_of(bit), 0, items_.butterflies.size());
  items_.butterflies.push_back({bit, tangent, cosine_of(tangent), static_cast<int>(items_.butterflies.size())});
}

void Decomposer::add_probe(const LocalOperation& op, std::uint64_t x_mask, std::uint64_t z_mask) {
  if (op.probe < 0) return;
  const double factor = op.kind == LocalKind::pauli_rotation ? op.weight : -2 * op.weight;
  item(ItemKind::probe, x_mask, (z_mask | op.control_mask) & ~x_mask, items_.probes.size());
  items_.probes.push_back({x_mask, z_mask, op.control_mask, op.control_values, factor, op.probe});
}

void Decomposer::varying(VaryingItems::Form form, std::uint32_t index) {
  items_.varying.push_back({form, index, static_cast<std::uint32_t>(items_.phases.size()),
                            static_cast<std::uint32_t>(items_.butterflies.size())});
}

void Decomposer::by_operation(ItemKind kind, std::uint64_t mixed, std::uint64_t watched, std::uint32_t index) {
  flush_all(mixed | watched);
  item(kind, mixed, watched & ~mixed, index);
}

void Decomposer::item(ItemKind kind, std::uint64_t mixed, std::uint64_t watched, std::size_t index) {
  items_.order.push_back({kind, mixed, watched, static_cast<std::uint32_t>(index), std::exchange(gates_, 0)});
}

}  // namespace onehop::quantum
