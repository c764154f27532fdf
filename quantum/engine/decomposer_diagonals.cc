// Diagonals as conditional factors.
#include "quantum/engine/decomposer.h"

#include <cmath>
#include <utility>

namespace onehop::quantum {
namespace {

constexpr std::size_t max_factored_bits = 4;

bool is_one(std::complex<double> factor) { return std::norm(factor - 1.0) <= negligible * negligible; }

}  // namespace

void Decomposer::add_diagonal(const std::vector<int>& bits, const std::vector<Number>& values,
                              const GateControls& controls, std::uint32_t index) {
  if (bits.size() == 1 && controls.mask == 0 && waiting_[static_cast<std::size_t>(bits[0])]) {
    auto& waiting = waiting_[static_cast<std::size_t>(bits[0])];
    if (std::abs(std::abs(values[0]) - 1) < 1e-9 && std::abs(std::abs(values[1]) - 1) < 1e-9) {
      waiting = product({values[0], 0, 0, values[1]}, *waiting);
      waiting_gates_[static_cast<std::size_t>(bits[0])] += std::exchange(gates_, 0);
      return;
    }
  }
  std::uint64_t mask = controls.mask;
  for (const int bit : bits) mask |= bit_of(bit);
  flush_all(mask);
  bool factors = bits.size() <= max_factored_bits;
  for (const Number& value : values) factors = factors && std::abs(value) > 1e-3;
  if (!factors && !bits.empty()) {
    by_operation(ItemKind::table, 0, mask, index);
    return;
  }
  if (bits.size() == 2 && controls.mask == 0 && values[0] == values[3] && values[1] == values[2]) {
    phase_on(0, 0, controls, values[0]);
    push_phase({Phase::When::odd, mask, 0, values[1] / values[0]});
    return;
  }
  factor_into_phases(bits, values, controls);
}

void Decomposer::factor_into_phases(const std::vector<int>& bits, std::vector<Number> values,
                                    const GateControls& controls) {
  for (std::size_t b = 0; b < bits.size(); ++b) {
    for (std::size_t v = 0; v < values.size(); ++v) {
      if ((v >> b & 1) != 0) values[v] /= values[v ^ (std::size_t{1} << b)];
    }
  }
  for (std::size_t v = 0; v < values.size(); ++v) {
    std::uint64_t mask = 0;
    for (std::size_t b = 0; b < bits.size(); ++b) mask |= (v >> b & 1) << bits[b];
    phase_on(mask, mask, controls, values[v]);
  }
}

void Decomposer::phase_on(std::uint64_t mask, std::uint64_t want, const GateControls& controls, Number factor) {
  push_phase({Phase::When::all_of, mask | controls.mask, want | controls.values, factor});
}

void Decomposer::push_phase(const Phase& phase) {
  if (!is_one(phase.factor)) push_any_phase(phase);
}

void Decomposer::add_varying_phase(const LocalOperation& op, const GateControls& controls, std::uint32_t index) {
  flush_all(controls.mask);
  add_probe(op, 0, 0);
  varying(VaryingItems::Form::phase, index);
  push_varying_phase({Phase::When::all_of, controls.mask, controls.values, op.values.front()});
}

void Decomposer::push_any_phase(const Phase& phase) {
  item(ItemKind::phase, 0, phase.mask, items_.phases.size());
  items_.phases.push_back(phase);
}

void Decomposer::push_varying_phase(Phase phase) {
  phase.source = static_cast<int>(items_.phases.size());
  push_any_phase(phase);
}

}  // namespace onehop::quantum
