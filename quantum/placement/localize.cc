// One operation as one rank sees it: controls and diagonal factors on bits of its number are decided.
#include <algorithm>
#include <cmath>
#include <utility>

#include "onehop/error.h"
#include "onehop/quantum/placement.h"
#include "quantum/circuit/commutation.h"

namespace onehop::quantum {
namespace {

// Where the wires of an operation lie, and what those that are bits of the rank's number hold there.
struct Here {
  std::span<const int> bits;
  int local_bits;
  int rank;
  std::uint64_t flips;

  [[nodiscard]] int bit(int wire) const { return bits[static_cast<std::size_t>(wire)]; }
  [[nodiscard]] bool is_local(int wire) const { return bit(wire) < local_bits; }
  [[nodiscard]] unsigned held(int wire) const {
    const int place = bit(wire);
    return ((static_cast<unsigned>(rank) >> (place - local_bits)) ^ static_cast<unsigned>(flips >> place)) & 1U;
  }
};

// False if this rank's number says that nothing is done.
bool add_controls(const Operation& operation, const Here& here, LocalOperation& local) {
  for (std::size_t i = 0; i < operation.controls.size(); ++i) {
    const int wire = operation.controls[i];
    const auto wanted = static_cast<unsigned>(operation.control_values >> i) & 1U;
    if (!here.is_local(wire)) {
      if (here.held(wire) != wanted) return false;
      continue;
    }
    const std::uint64_t mask = std::uint64_t{1} << here.bit(wire);
    local.control_mask |= mask;
    if (wanted != 0) local.control_values |= mask;
  }
  return true;
}

// The index bits of targets that are remote, and what they hold.
struct Selected {
  std::vector<std::size_t> local;  // targets that stay
  std::size_t index = 0;           // the remote targets' part of the matrix's index
};

Selected select(const Operation& operation, const Here& here, LocalOperation& local) {
  Selected selected;
  for (std::size_t t = 0; t < operation.targets.size(); ++t) {
    const int wire = operation.targets[t];
    if (here.is_local(wire)) {
      selected.local.push_back(t);
      local.bits.push_back(here.bit(wire));
    } else {
      selected.index |= static_cast<std::size_t>(here.held(wire)) << t;
    }
  }
  return selected;
}

std::size_t spread(std::size_t index, const Selected& selected) {
  std::size_t whole = selected.index;
  for (std::size_t i = 0; i < selected.local.size(); ++i) whole |= ((index >> i) & 1U) << selected.local[i];
  return whole;
}

// A factor of the amplitudes whose controls fit; nothing if it is 1.
std::optional<LocalOperation> factor(LocalOperation local, Complex value) {
  if (value == Complex(1)) return std::nullopt;
  local.kind = LocalKind::diagonal;
  local.bits.clear();
  local.values = {value};
  return local;
}

std::optional<LocalOperation> resolve_diagonal(const Operation& operation, const Here& here, LocalOperation local) {
  const Selected selected = select(operation, here, local);
  const std::size_t size = std::size_t{1} << selected.local.size();
  local.kind = LocalKind::diagonal;
  for (std::size_t i = 0; i < size; ++i) local.values.push_back(operation.values[spread(i, selected)]);
  if (size == 1) return factor(std::move(local), local.values.front());
  if (std::all_of(local.values.begin(), local.values.end(), [](Complex v) { return v == Complex(1); })) return {};
  return local;
}

void check_selects(const Operation& operation, const Here& here) {
  for (std::size_t t = 0; t < operation.targets.size(); ++t) {
    if (here.is_local(operation.targets[t]) || detail::selects(operation, t)) continue;
    throw Error("resolve: the operation '" + operation.name + "' needs wire " + std::to_string(operation.targets[t]) +
                " local, but it is bit " + std::to_string(here.bit(operation.targets[t])) + " of " +
                std::to_string(here.local_bits) + " local ones");
  }
}

std::optional<LocalOperation> resolve_matrix(const Operation& operation, const Here& here, LocalOperation local,
                                             std::uint64_t& flips) {
  if (!here.is_local(operation.targets.front()) && detail::is_flip(operation)) {
    const bool one = here.held(operation.targets.front()) != 0;
    flips ^= std::uint64_t{1} << here.bit(operation.targets.front());
    return factor(std::move(local), operation.values[one ? 1 : 2]);
  }
  const Selected selected = select(operation, here, local);
  const std::size_t size = std::size_t{1} << selected.local.size();
  const std::size_t stride = std::size_t{1} << operation.targets.size();
  if (size == stride) {
    local.values = operation.values;
    return local;
  }
  check_selects(operation, here);
  bool identity = true;
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = 0; c < size; ++c) {
      local.values.push_back(operation.values[spread(r, selected) * stride + spread(c, selected)]);
      identity = identity && local.values.back() == Complex(r == c ? 1 : 0);
    }
  }
  if (identity) return {};
  if (size == 1) return factor(std::move(local), local.values.front());
  return local;
}

std::optional<LocalOperation> resolve_rotation(const Operation& operation, const Here& here, LocalOperation local) {
  local.kind = LocalKind::pauli_rotation;
  local.angle = operation.angle;
  for (std::size_t t = 0; t < operation.targets.size(); ++t) {
    const int wire = operation.targets[t];
    const char pauli = operation.paulis[t];
    if (!here.is_local(wire)) {
      if (pauli != 'Z') throw Error("resolve: a Pauli rotation needs wire " + std::to_string(wire) + " local");
      if (here.held(wire) != 0) local.angle = -local.angle;
      continue;
    }
    const std::uint64_t mask = std::uint64_t{1} << here.bit(wire);
    if (pauli != 'Z') local.x_mask |= mask;
    if (pauli != 'X') local.z_mask |= mask;
  }
  if ((local.x_mask | local.z_mask) != 0) return local;
  return factor(local, std::polar(1.0, -local.angle / 2));
}

}  // namespace

std::optional<LocalOperation> resolve(const Operation& operation, std::span<const int> bits, int local_bits, int rank,
                                      std::uint64_t& flips) {
  const Here here{bits, local_bits, rank, flips};
  LocalOperation local;
  if (!add_controls(operation, here, local)) return std::nullopt;
  switch (operation.kind) {
    case OperationKind::matrix:
      return resolve_matrix(operation, here, std::move(local), flips);
    case OperationKind::diagonal:
      return resolve_diagonal(operation, here, std::move(local));
    case OperationKind::pauli_rotation:
      return resolve_rotation(operation, here, std::move(local));
    case OperationKind::global_phase:
      return factor(std::move(local), std::polar(1.0, operation.angle));
    case OperationKind::swap:
      local.kind = LocalKind::swap;
      for (const int wire : operation.targets) {
        if (!here.is_local(wire)) throw Error("resolve: a swap needs wire " + std::to_string(wire) + " local");
        local.bits.push_back(here.bit(wire));
      }
      return local;
    default:
      return std::nullopt;
  }
}

}  // namespace onehop::quantum
