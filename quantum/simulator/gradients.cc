// Derivatives by the adjoint method. With |ket> the state after the gate exp(-i angle/2 P) and <bra| = <ket| H, both
// taken back from the end of the circuit, the derivative of <H> is Im <bra| P |ket>: T. Jones and J. Gacon, "Efficient
// calculation of gradients in classical simulations of variational quantum algorithms", arXiv:2009.02823. Both states
// go back through the stages of the placement, with the same exchanges in reverse, and the engine makes the products
// while it has both in the cache.
#include <algorithm>
#include <string>

#include "onehop/error.h"
#include "quantum/simulator/compiled_impl.h"
#include "quantum/state/pauli_masks.h"
#include "quantum/state/precision.h"
#include "src/base/clock.h"

namespace onehop::quantum {
namespace {

Operation inverse(const Operation& operation) {
  Operation result = operation;
  result.angle = -result.angle;
  for (Complex& value : result.values) value = std::conj(value);
  if (operation.kind != OperationKind::matrix) return result;
  const std::size_t size = std::size_t{1} << operation.targets.size();
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = r + 1; c < size; ++c) std::swap(result.values[r * size + c], result.values[c * size + r]);
  }
  return result;
}

// Moves the amplitudes so that qubits are on these bits again.
void restore_bits(State& state, std::span<const int> bits) {
  std::vector<int> permutation(bits.size());
  for (std::size_t qubit = 0; qubit < bits.size(); ++qubit) {
    permutation[static_cast<std::size_t>(state.bits()[qubit])] = bits[qubit];
  }
  state.permute(permutation);
}

// The sum of weights times sums, applied to ket.
void apply_sums(const State& ket, std::span<const PauliSum> sums, std::span<const double> weights, State& bra) {
  bra.set_layout({ket.bits().begin(), ket.bits().end()}, ket.flips());
  bra.fill_zero();
  for (std::size_t s = 0; s < sums.size(); ++s) add_applied(ket, sums[s], weights[s], bra);
}

// The derivative of <H^2> - <H>^2 is that of the expectation value of H^2 - 2 <H> H with <H> held fixed. Adds the
// weighted sum of these, applied to ket, to `bra`; `once` receives H ket. Returns the variances.
std::vector<double> apply_variances(const State& ket, std::span<const PauliSum> sums,
                                    std::span<const std::vector<PauliSum>> flips, std::span<const double> weights,
                                    State& once, State& bra) {
  bra.set_layout({ket.bits().begin(), ket.bits().end()}, ket.flips());
  bra.fill_zero();
  std::vector<double> values;
  const PauliSum one{{PauliTerm{}}};
  for (std::size_t s = 0; s < sums.size(); ++s) {
    const double mean = apply_sum(ket, sums[s], once).real();
    double variance = once.norm_squared() - mean * mean;
    add_applied(once, sums[s], weights[s], bra);
    add_applied(once, one, -2 * weights[s] * mean, bra);
    for (PauliSum part : flips[s]) {
      apply_sum(ket, part, once);
      variance += once.norm_squared();
      for (PauliTerm& term : part.terms) term.coefficient = std::conj(term.coefficient);
      add_applied(once, part, weights[s], bra);
    }
    values.push_back(std::max(0.0, variance));
  }
  return values;
}

}  // namespace

std::unique_ptr<State> Compiled::Impl::new_state() const {
  auto result = std::make_unique<State>(state->group(), placement.qubits, options.precision, options.state);
  result->set_part_bits(part_bits);
  return result;
}

void Compiled::Impl::make_inverse(StageProgram& program, std::size_t stage, std::size_t part,
                                  std::uint64_t flips) const {
  const std::vector<int>& operations = placement.stages[stage].operations;
  std::size_t needed = 0;
  for (auto index = operations.rbegin(); index != operations.rend(); ++index) {
    if (!needs(*index)) continue;
    const Operation operation = inverse(placement.operations[static_cast<std::size_t>(*index)]);
    auto local = localize(operation, placement.stages[stage].bits, part_bits, number_of(part), flips);
    if (!local) continue;
    local->source = *index;
    if (local->varies) {
      local->probe = static_cast<int>(std::lower_bound(varying.begin(), varying.end(), *index) - varying.begin());
    }
    program.operations.push_back(std::move(*local));
    if (program.operations.back().varies) needed = program.operations.size();
  }
  // Nothing comes before the first stage, so that gates before the first one that varies need not be undone.
  if (stage == 0) program.operations.resize(needed);
  program.flips = flips;
  program.compile(*state, part_bits, true);
}

void Compiled::Impl::go_back(State& ket, State& bra_state, std::span<double> by_angle) {
  // From qubits to wires.
  const std::vector<int>& last = placement.stages.back().bits;
  for (State* const one : {&ket, &bra_state}) one->set_layout(last, one->flips());
  auto& inverses = programs->inverses;
  // Expectation values may have moved the amplitudes to where no bit is flipped.
  if (ket.flips() != programs->inverse_flips) {
    for (auto& inverse : inverses) inverse.clear();
    programs->inverse_flips = ket.flips();
  }
  std::vector<double> by_part(parts() * by_angle.size());
  for (std::size_t s = placement.stages.size(); s-- > 0;) {
    if (inverses[s].empty()) {
      std::vector<StageProgram> programs(parts());
      for (std::size_t part = 0; part < parts(); ++part) make_inverse(programs[part], s, part, ket.flips());
      inverses[s] = std::move(programs);
    }
    for (std::size_t part = 0; part < parts(); ++part) {
      const auto sums = std::span(by_part).subspan(part * by_angle.size(), by_angle.size());
      const EngineCounters done = inverses[s][part].run(*this, part, inverse_angles, ket, &bra_state, sums);
      counters.passes += done.passes;
      counters.multiply_adds += done.multiply_adds;
      inverses[s][part].fresh = true;  // until bind() changes the angles
    }
    for (State* const one : {&ket, &bra_state}) {
      one->set_layout(placement.stages[s].bits, inverses[s].front().flips);
      if (s > 0) one->exchange(placement.stages[s].swaps);
    }
  }
  std::ranges::copy(sum_over_parts(ket.group(), by_part, by_angle.size()), by_angle.begin());
}

std::vector<Complex> Compiled::Impl::final_values(std::span<const PauliSum> sums) {
  if (options.reproducible == 0) return quantum::expectations(*state, sums);
  if (!bra) bra = new_state();
  std::vector<Complex> values;
  for (const PauliSum& sum : sums) values.push_back(apply_sum(*state, sum, *bra));
  return values;
}

Gradients Compiled::Impl::gradients(std::span<const double> values, std::span<const PauliSum> sums,
                                    std::span<const double> weights, bool variance,
                                    std::span<const std::vector<PauliSum>> flips) {
  if (!weights.empty() && weights.size() != sums.size()) {
    throw BadInput("expected a weight for each of " + std::to_string(sums.size()) + " observables, found " +
                   std::to_string(weights.size()));
  }
  Gradients result;
  const double begin = base::steady_seconds();
  run(values);
  const double middle = base::steady_seconds();
  counters = {};
  result.forward_seconds = middle - begin;
  const std::size_t rows = weights.empty() ? sums.size() : 1;
  if (!bra) bra = new_state();
  if ((rows > 1 || variance) && !kept) kept = new_state();
  if (!weights.empty() && !variance) {
    const std::vector<int> bits(state->bits().begin(), state->bits().end());
    for (const Complex& value : final_values(sums)) result.values.push_back(value.real());
    restore_bits(*state, bits);
  }
  if (rows > 1) kept->copy_from(*state);
  result.derivatives.assign(rows * names.size(), 0);
  for (std::size_t r = 0; r < rows; ++r) {
    if (r > 0 && !variance) state->copy_from(*kept);
    const double one = 1;
    const auto of_row = weights.empty() ? sums.subspan(r, 1) : sums;
    const auto factors = weights.empty() ? std::span(&one, 1) : weights;
    if (variance) {
      // Of the state and its copy, one is the ket, and the other receives H ket.
      const State& ket = rows > 1 ? *kept : *state;
      const auto found = apply_variances(ket, of_row, flips.subspan(r), factors, rows > 1 ? *state : *kept, *bra);
      result.values.insert(result.values.end(), found.begin(), found.end());
      if (rows > 1) state->copy_from(*kept);
    } else if (weights.empty()) {
      result.values.push_back(apply_sum(*state, sums[r], *bra).real());
    } else {
      apply_sums(*state, sums, weights, *bra);
    }
    std::vector<double> by_angle(varying.size());
    go_back(*state, *bra, by_angle);
    for (std::size_t v = 0; v < varying.size(); ++v) {
      const Operation& operation = placement.operations[static_cast<std::size_t>(varying[v])];
      for (const auto& [parameter, factor] : operation.angles.front().terms) {
        result.derivatives[r * names.size() + static_cast<std::size_t>(parameter)] += factor * by_angle[v];
      }
    }
  }
  result.backward_passes = counters.passes / static_cast<double>(parts());
  result.backward_multiply_adds = counters.multiply_adds / static_cast<double>(parts());
  result.backward_seconds = base::steady_seconds() - middle;
  return result;
}

}  // namespace onehop::quantum
