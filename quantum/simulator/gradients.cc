// Derivatives by the adjoint method. With |ket> the state after the gate exp(-i angle/2 P) and <bra| = <ket| H, both
// taken back from the end of the circuit, the derivative of <H> is Im <bra| P |ket>: T. Jones and J. Gacon, "Efficient
// calculation of gradients in classical simulations of variational quantum algorithms", arXiv:2009.02823. Both states
// go back through the stages of the placement, with the same exchanges in reverse, and the engine makes the products
// while it has both in the cache.
#include <algorithm>
#include <string>

#include "onehop/error.h"
#include "quantum/simulator/compiled_impl.h"
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

void copy_to(const State& from, State& to) {
  to.set_layout({from.bits().begin(), from.bits().end()}, from.flips());
  const auto copy = [&]<typename T>(std::span<std::complex<T>> source) {
    std::copy(source.begin(), source.end(), to.local<T>().begin());
  };
  if (from.precision() == Precision::single_precision) {
    copy(from.local<float>());
  } else {
    copy(from.local<double>());
  }
}

// Moves the amplitudes so that qubits are on these bits again.
void restore_bits(State& state, std::span<const int> bits) {
  std::vector<int> permutation(bits.size());
  for (std::size_t qubit = 0; qubit < bits.size(); ++qubit) {
    permutation[static_cast<std::size_t>(state.bits()[qubit])] = bits[qubit];
  }
  state.permute(permutation);
}

// bra = the sum of weights times sums, applied to ket. Returns <ket| bra>.
double apply_sums(State& ket, std::span<const PauliSum> sums, std::span<const double> weights, State& bra) {
  bra.set_layout({ket.bits().begin(), ket.bits().end()}, ket.flips());
  const auto clear = [&]<typename T>(std::span<std::complex<T>> amplitudes) {
    std::fill(amplitudes.begin(), amplitudes.end(), std::complex<T>(0));
  };
  if (bra.precision() == Precision::single_precision) {
    clear(bra.local<float>());
  } else {
    clear(bra.local<double>());
  }
  for (std::size_t s = 0; s < sums.size(); ++s) add_applied(ket, sums[s], weights[s], bra);
  // State::inner_product would move the amplitudes if bits are flipped.
  double value = 0;
  const auto multiply = [&]<typename T>(std::span<std::complex<T>> amplitudes) {
    value = inner_product<T>(amplitudes, bra.local<T>(), ket.engine()).real();
  };
  if (ket.precision() == Precision::single_precision) {
    multiply(ket.local<float>());
  } else {
    multiply(ket.local<double>());
  }
  sum_over_ranks(ket.group(), std::span(&value, 1));
  return value;
}

}  // namespace

std::unique_ptr<State> Compiled::Impl::new_state() const {
  return std::make_unique<State>(state->group(), placement.qubits, options.precision, options.state);
}

// `first`: nothing comes before the stage, so that gates before the first one that varies need not be undone.
std::vector<LocalOperation> Compiled::Impl::inverse_stage(const Stage& stage, std::uint64_t& flips, bool first) const {
  std::vector<LocalOperation> operations;
  std::size_t needed = 0;
  for (auto index = stage.operations.rbegin(); index != stage.operations.rend(); ++index) {
    const Operation operation = inverse(placement.operations[static_cast<std::size_t>(*index)]);
    auto local = localize(operation, stage.bits, state->local_bits(), state->group().rank(), flips);
    if (!local) continue;
    local->source = *index;
    if (local->varies) {
      local->probe = static_cast<int>(std::lower_bound(varying.begin(), varying.end(), *index) - varying.begin());
    }
    operations.push_back(std::move(*local));
    if (operations.back().varies) needed = operations.size();
  }
  if (first) operations.resize(needed);
  return operations;
}

void Compiled::Impl::go_back(State& ket, State& bra_state, std::span<double> by_angle) {
  // From qubits to wires.
  const std::vector<int>& last = placement.stages.back().bits;
  for (State* const one : {&ket, &bra_state}) one->set_layout(last, one->flips());
  for (std::size_t s = placement.stages.size(); s-- > 0;) {
    const Stage& stage = placement.stages[s];
    std::uint64_t flips = ket.flips();
    const auto operations = inverse_stage(stage, flips, s == 0);
    const auto apply = [&]<typename T>(std::span<std::complex<T>> amplitudes) {
      const auto done = apply_to_both<T>(amplitudes, bra_state.local<T>(), operations, by_angle, ket.engine());
      counters.passes += done.passes;
      counters.multiply_adds += done.multiply_adds;
    };
    if (options.precision == Precision::single_precision) {
      apply(ket.local<float>());
    } else {
      apply(ket.local<double>());
    }
    for (State* const one : {&ket, &bra_state}) {
      one->set_layout(stage.bits, flips);
      if (s > 0) one->exchange(stage.swaps);
    }
  }
  sum_over_ranks(ket.group(), by_angle);
}

Gradients Compiled::Impl::gradients(std::span<const double> values, std::span<const PauliSum> sums,
                                    std::span<const double> weights) {
  check_observables(sums, placement.qubits, true);
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
  if (rows > 1 && !kept) kept = new_state();
  if (!weights.empty()) {
    const std::vector<int> bits(state->bits().begin(), state->bits().end());
    for (const auto& value : expectations(*state, sums)) result.values.push_back(value.real());
    restore_bits(*state, bits);
  }
  if (rows > 1) copy_to(*state, *kept);
  result.derivatives.assign(rows * names.size(), 0);
  for (std::size_t r = 0; r < rows; ++r) {
    if (r > 0) copy_to(*kept, *state);
    const double one = 1;
    if (weights.empty()) {
      result.values.push_back(apply_sums(*state, sums.subspan(r, 1), {&one, 1}, *bra));
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
  result.backward_passes = counters.passes;
  result.backward_multiply_adds = counters.multiply_adds;
  result.backward_seconds = base::steady_seconds() - middle;
  return result;
}

}  // namespace onehop::quantum
