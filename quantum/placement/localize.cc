// Restricts an operation to one rank: evaluates its controls and diagonal factors on the bits of the rank's number.
#include <algorithm>
#include <cmath>
#include <utility>

#include "onehop/error.h"
#include "onehop/quantum/placement.h"
#include "quantum/circuit/commutation.h"

namespace onehop::quantum {
namespace {

// The position of each wire, and the values of the wires that are bits of the rank's number.
struct WireLayout {
  std::span<const int> bits;
  int local_bits;
  int rank;
  std::uint64_t flips;

  [[nodiscard]] int bit(int wire) const { return bits[static_cast<std::size_t>(wire)]; }
  [[nodiscard]] bool is_local(int wire) const { return bit(wire) < local_bits; }
  [[nodiscard]] unsigned value(int wire) const {
    const int place = bit(wire);
    return ((static_cast<unsigned>(rank) >> (place - local_bits)) ^ static_cast<unsigned>(flips >> place)) & 1U;
  }
};

// Returns false if a control on a bit of this rank's number does not hold, so that the operation does nothing here.
bool add_controls(const Operation& operation, const WireLayout& layout, LocalOperation& local) {
  for (std::size_t i = 0; i < operation.controls.size(); ++i) {
    const int wire = operation.controls[i];
    const auto wanted = static_cast<unsigned>(operation.control_values >> i) & 1U;
    if (!layout.is_local(wire)) {
      if (layout.value(wire) != wanted) return false;
      continue;
    }
    const std::uint64_t mask = std::uint64_t{1} << layout.bit(wire);
    local.control_mask |= mask;
    if (wanted != 0) local.control_values |= mask;
  }
  return true;
}

// The targets of an operation, divided into local and remote ones.
struct Selected {
  std::vector<std::size_t> local;  // positions of the local targets in the list of targets
  std::size_t index = 0;           // the remote targets' bits of the matrix index
};

Selected select(const Operation& operation, const WireLayout& layout, LocalOperation& local) {
  Selected selected;
  for (std::size_t t = 0; t < operation.targets.size(); ++t) {
    const int wire = operation.targets[t];
    if (layout.is_local(wire)) {
      selected.local.push_back(t);
      local.bits.push_back(layout.bit(wire));
    } else {
      selected.index |= static_cast<std::size_t>(layout.value(wire)) << t;
    }
  }
  return selected;
}

// The index into the full matrix of an index over the local targets.
std::size_t matrix_index(std::size_t index, const Selected& selected) {
  std::size_t whole = selected.index;
  for (std::size_t i = 0; i < selected.local.size(); ++i) whole |= ((index >> i) & 1U) << selected.local[i];
  return whole;
}

// A factor for the amplitudes whose controls hold; nullopt if the factor is 1.
std::optional<LocalOperation> factor(LocalOperation local, Complex value) {
  if (value == Complex(1)) return std::nullopt;
  local.kind = LocalKind::diagonal;
  local.bits.clear();
  local.values = {value};
  return local;
}

std::optional<LocalOperation> localize_diagonal(const Operation& operation, const WireLayout& layout,
                                                LocalOperation local) {
  const Selected selected = select(operation, layout, local);
  const std::size_t size = std::size_t{1} << selected.local.size();
  local.kind = LocalKind::diagonal;
  for (std::size_t i = 0; i < size; ++i) local.values.push_back(operation.values[matrix_index(i, selected)]);
  if (size == 1) {
    const Complex value = local.values.front();
    return factor(std::move(local), value);
  }
  if (std::all_of(local.values.begin(), local.values.end(), [](Complex v) { return v == Complex(1); })) return {};
  return local;
}

void check_selects(const Operation& operation, const WireLayout& layout) {
  for (std::size_t t = 0; t < operation.targets.size(); ++t) {
    if (layout.is_local(operation.targets[t]) || detail::selects(operation, t)) continue;
    throw Error("localize: the operation '" + operation.name + "' needs wire " + std::to_string(operation.targets[t]) +
                " to be local, but it lies on bit " + std::to_string(layout.bit(operation.targets[t])) +
                ", and there are " + std::to_string(layout.local_bits) + " local bits");
  }
}

std::optional<LocalOperation> localize_matrix(const Operation& operation, const WireLayout& layout,
                                              LocalOperation local, std::uint64_t& flips) {
  if (!layout.is_local(operation.targets.front()) && detail::is_flip(operation)) {
    const bool one = layout.value(operation.targets.front()) != 0;
    flips ^= std::uint64_t{1} << layout.bit(operation.targets.front());
    return factor(std::move(local), operation.values[one ? 1 : 2]);
  }
  const Selected selected = select(operation, layout, local);
  const std::size_t size = std::size_t{1} << selected.local.size();
  const std::size_t stride = std::size_t{1} << operation.targets.size();
  if (size == stride) {
    local.values = operation.values;
    return local;
  }
  check_selects(operation, layout);
  bool identity = true;
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = 0; c < size; ++c) {
      local.values.push_back(operation.values[matrix_index(r, selected) * stride + matrix_index(c, selected)]);
      identity = identity && local.values.back() == Complex(r == c ? 1 : 0);
    }
  }
  if (identity) return {};
  if (size == 1) {
    const Complex value = local.values.front();
    return factor(std::move(local), value);
  }
  return local;
}

// Sets the masks of a Pauli string; returns its sign on the wires that are not local.
double add_string(const Operation& operation, const WireLayout& layout, LocalOperation& local) {
  double sign = 1;
  for (std::size_t t = 0; t < operation.targets.size(); ++t) {
    const int wire = operation.targets[t];
    const char pauli = operation.paulis[t];
    if (!layout.is_local(wire)) {
      if (pauli != 'Z') throw Error("localize: a Pauli rotation needs wire " + std::to_string(wire) + " to be local");
      if (layout.value(wire) != 0) sign = -sign;
      continue;
    }
    const std::uint64_t mask = std::uint64_t{1} << layout.bit(wire);
    if (pauli != 'Z') local.x_mask |= mask;
    if (pauli != 'X') local.z_mask |= mask;
  }
  return sign;
}

std::optional<LocalOperation> localize_rotation(const Operation& operation, const WireLayout& layout,
                                                LocalOperation local) {
  local.kind = LocalKind::pauli_rotation;
  local.angle = add_string(operation, layout, local) * operation.angle;
  if ((local.x_mask | local.z_mask) != 0) return local;
  return factor(local, std::polar(1.0, -local.angle / 2));
}

// A rotation or a phase whose angle depends on parameters keeps its form for every angle, 0 included.
LocalOperation localize_varying(const Operation& operation, const WireLayout& layout, LocalOperation local) {
  local.varies = true;
  local.weight *= add_string(operation, layout, local);
  if ((local.x_mask | local.z_mask) != 0) {
    local.kind = LocalKind::pauli_rotation;
  } else {
    local.kind = LocalKind::diagonal;
    local.values = {1};
    if (operation.kind == OperationKind::pauli_rotation) local.weight *= -0.5;
  }
  set_angle(local, operation.angle);
  return local;
}

}  // namespace

std::optional<LocalOperation> localize(const Operation& operation, std::span<const int> bits, int local_bits, int rank,
                                       std::uint64_t& flips) {
  const WireLayout layout{bits, local_bits, rank, flips};
  LocalOperation local;
  if (!add_controls(operation, layout, local)) return std::nullopt;
  if (!operation.angles.empty() &&
      (operation.kind == OperationKind::pauli_rotation || operation.kind == OperationKind::global_phase)) {
    return localize_varying(operation, layout, std::move(local));
  }
  switch (operation.kind) {
    case OperationKind::matrix:
      return localize_matrix(operation, layout, std::move(local), flips);
    case OperationKind::diagonal:
      return localize_diagonal(operation, layout, std::move(local));
    case OperationKind::pauli_rotation:
      return localize_rotation(operation, layout, std::move(local));
    case OperationKind::global_phase:
      return factor(std::move(local), std::polar(1.0, operation.angle));
    case OperationKind::swap:
      local.kind = LocalKind::swap;
      for (const int wire : operation.targets) {
        if (!layout.is_local(wire)) throw Error("localize: a swap needs wire " + std::to_string(wire) + " to be local");
        local.bits.push_back(layout.bit(wire));
      }
      return local;
    default:
      return std::nullopt;
  }
}

}  // namespace onehop::quantum
