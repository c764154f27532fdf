#include "quantum/simulator/noisy_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "onehop/quantum/placement.h"
#include "onehop/quantum/simulator.h"
#include "quantum/circuit/random.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

constexpr double negligible = 1e-14;

bool is_diagonal_matrix(std::span<const Complex> m, std::size_t size) {
  for (std::size_t i = 0; i < m.size(); ++i) {
    if (i % (size + 1) != 0 && std::abs(m[i]) > negligible) return false;
  }
  return true;
}

// m^dagger m.
std::vector<Complex> product_of(std::span<const Complex> m, std::size_t size) {
  std::vector<Complex> product(m.size());
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = 0; c < size; ++c) {
      for (std::size_t k = 0; k < size; ++k) product[r * size + c] += std::conj(m[k * size + r]) * m[k * size + c];
    }
  }
  return product;
}

Operation operation_of(std::vector<Complex> matrix, std::size_t size) {
  Operation operation;
  operation.name = "kraus";
  operation.kind = OperationKind::matrix;
  if (is_diagonal_matrix(matrix, size)) {
    operation.kind = OperationKind::diagonal;
    for (std::size_t i = 0; i < size; ++i) matrix[i] = matrix[i * (size + 1)];
    matrix.resize(size);
  }
  operation.values = std::move(matrix);
  return operation;
}

// Applies gates and Kraus operators to a state that is split over ranks.
void run_part(State& state, const Circuit& part) {
  PlacementOptions options;
  options.bytes_per_amplitude = bytes_per_amplitude(state.precision());
  options.bits.assign(state.bits().begin(), state.bits().end());
  options.search_seconds = 0;
  options.ranks_per_host = state.ranks_per_host();
  const Placement placement = place(part, state.group().size(), options);
  Executor executor(state, placement, 0, [](int, int, double) { return 0; });
  while (executor.step()) {
  }
}

}  // namespace

NoisyProgram::NoisyProgram(const NoisyCircuit& noisy) : qubits_(noisy.circuit.qubits) {
  noisy.circuit.validate();
  noisy.circuit.require_bound();
  for (std::size_t c = 0; c < noisy.channels.size(); ++c) channels_.push_back(prepare(noisy.channels[c], c));
  auto use = noisy.uses.begin();
  for (std::size_t i = 0; i < noisy.circuit.operations.size(); ++i) {
    const Operation& gate = noisy.circuit.operations[i];
    if (gate.kind != OperationKind::barrier) {
      if (!gate.is_gate() || !gate.condition.clbits.empty()) {
        throw BadInput("operation " + std::to_string(i) + " (" + gate.name + "): expected gates without conditions");
      }
      steps_.push_back({static_cast<int>(gates_.size()), -1, {}});
      gates_.push_back(gate);
    }
    for (; use != noisy.uses.end() && use->gate == static_cast<int>(i); ++use) add_channel(*use, noisy);
  }
  if (use != noisy.uses.end()) {
    throw BadInput("expected the uses of channels by ascending gate, each below " +
                   std::to_string(noisy.circuit.operations.size()) + ", found gate " + std::to_string(use->gate));
  }
  for (const Step& step : steps_) {
    locals_before_.push_back(locals_.size());
    std::optional<LocalOperation> found;
    if (step.gate >= 0) {
      found = local(gates_[static_cast<std::size_t>(step.gate)], qubits_);
    } else if (const Channel& channel = channels_[static_cast<std::size_t>(step.channel)]; !channel.does_nothing) {
      found = local(operation(step, channel.usual), qubits_);
    }
    if (found) locals_.push_back(std::move(*found));
  }
  locals_before_.push_back(locals_.size());
}

NoisyProgram::Channel NoisyProgram::prepare(const NoiseChannel& channel, std::size_t number) const {
  const std::string name = "channel " + std::to_string(number);
  const std::size_t numbers = channel.operators.empty() ? 0 : channel.operators.front().size();
  const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(numbers))));
  if (size < 2 || size * size != numbers || !std::has_single_bit(size)) {
    throw BadInput(name + ": expected operators of 4^k numbers, found " + std::to_string(numbers));
  }
  if (!channel.probabilities.empty() && channel.probabilities.size() != channel.operators.size()) {
    throw BadInput(name + ": expected a probability for each of " +
                   base::counted(channel.operators.size(), "operator") + ", found " +
                   std::to_string(channel.probabilities.size()));
  }
  Channel result;
  result.probabilities = channel.probabilities;
  double best = -1;
  for (std::size_t k = 0; k < channel.operators.size(); ++k) {
    std::vector<Complex> matrix = channel.operators[k];
    if (matrix.size() != numbers) throw BadInput(name + ": expected operators of equal size");
    result.products.push_back(product_of(matrix, size));
    result.diagonal = result.diagonal && is_diagonal_matrix(result.products.back(), size);
    double trace = 0;
    for (std::size_t i = 0; i < size; ++i) trace += result.products.back()[i * (size + 1)].real();
    if (trace > best) best = trace, result.usual = static_cast<std::uint32_t>(k);
    if (!result.probabilities.empty() && result.probabilities[k] > 0) {
      for (Complex& value : matrix) value /= std::sqrt(result.probabilities[k]);
    }
    result.operators.push_back(operation_of(std::move(matrix), size));
  }
  if (result.diagonal) {
    for (auto& product : result.products) {
      for (std::size_t i = 0; i < size; ++i) product[i] = product[i * (size + 1)];
      product.resize(size);
    }
  }
  const Operation& usual = result.operators[result.usual];
  result.does_nothing =
      usual.kind == OperationKind::diagonal &&
      std::all_of(usual.values.begin(), usual.values.end(), [](Complex v) { return std::abs(v - 1.0) <= negligible; });
  return result;
}

void NoisyProgram::add_channel(const ChannelUse& use, const NoisyCircuit& noisy) {
  if (use.channel < 0 || static_cast<std::size_t>(use.channel) >= channels_.size()) {
    throw BadInput("expected a channel below " + std::to_string(channels_.size()) + ", found " +
                   std::to_string(use.channel));
  }
  const std::size_t numbers = noisy.channels[static_cast<std::size_t>(use.channel)].operators.front().size();
  if (numbers != std::size_t{1} << 2 * use.qubits.size()) {
    throw BadInput("channel " + std::to_string(use.channel) + ": its operators do not act on " +
                   base::counted(use.qubits.size(), "qubit"));
  }
  Circuit check;
  check.qubits = qubits_;
  Operation& operation = check.operations.emplace_back();
  operation.kind = OperationKind::matrix;
  operation.name = "channel";
  operation.targets = use.qubits;
  operation.values.resize(numbers);
  check.validate(false);
  if (channels_[static_cast<std::size_t>(use.channel)].probabilities.empty()) dependent_.push_back(steps_.size());
  steps_.push_back({-1, use.channel, use.qubits});
}

std::optional<LocalOperation> NoisyProgram::local(const Operation& operation, int qubits) {
  std::vector<int> bits(static_cast<std::size_t>(qubits));
  std::iota(bits.begin(), bits.end(), 0);
  std::uint64_t flips = 0;
  return localize(operation, bits, qubits, 0, flips);
}

Operation NoisyProgram::operation(const Step& step, std::uint32_t op) const {
  Operation result = channels_[static_cast<std::size_t>(step.channel)].operators[op];
  result.targets = step.qubits;
  return result;
}

std::size_t NoisyProgram::next_dependent(std::size_t from) const {
  const auto found = std::lower_bound(dependent_.begin(), dependent_.end(), from);
  return found == dependent_.end() ? steps_.size() : *found;
}

std::uint32_t NoisyProgram::default_operator(std::size_t step) const {
  return channels_[static_cast<std::size_t>(steps_[step].channel)].usual;
}

std::vector<NoiseEvent> NoisyProgram::draw(std::uint64_t seed, std::uint64_t trajectory) const {
  std::vector<NoiseEvent> events;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (steps_[s].channel < 0) continue;
    const Channel& channel = channels_[static_cast<std::size_t>(steps_[s].channel)];
    if (channel.probabilities.empty()) continue;
    // The default operator has the lowest numbers, the others follow in their order.
    double number = detail::uniform(seed, trajectory, s) - channel.probabilities[channel.usual];
    if (number < 0) continue;
    auto last = channel.usual;
    for (std::uint32_t k = 0; k < channel.probabilities.size() && number >= 0; ++k) {
      if (k == channel.usual || channel.probabilities[k] <= 0) continue;
      number -= channel.probabilities[k];
      last = k;
    }
    if (last != channel.usual) events.push_back({static_cast<std::uint32_t>(s), last});
  }
  return events;
}

void NoisyProgram::advance(State& state, std::size_t from, std::size_t to) const {
  const std::size_t begin = locals_before_[from];
  const std::size_t end = locals_before_[to];
  if (begin == end) return;
  if (state.group().size() == 1) {
    state.apply(std::span(locals_).subspan(begin, end - begin));
    return;
  }
  Circuit part;
  part.qubits = qubits_;
  for (std::size_t s = from; s < to; ++s) {
    const Step& step = steps_[s];
    if (step.gate >= 0) {
      part.operations.push_back(gates_[static_cast<std::size_t>(step.gate)]);
    } else if (const Channel& channel = channels_[static_cast<std::size_t>(step.channel)]; !channel.does_nothing) {
      part.operations.push_back(operation(step, channel.usual));
    }
  }
  run_part(state, part);
}

void NoisyProgram::apply(State& state, const NoiseEvent& event) const {
  const Operation one = operation(steps_[event.step], event.op);
  if (state.group().size() == 1) {
    if (const auto operation = local(one, qubits_)) state.apply(std::span(&*operation, 1));
    return;
  }
  Circuit part;
  part.qubits = qubits_;
  part.operations.push_back(one);
  run_part(state, part);
}

std::vector<double> NoisyProgram::weights(State& state, std::size_t step) const {
  const Channel& channel = channels_[static_cast<std::size_t>(steps_[step].channel)];
  const std::vector<int>& qubits = steps_[step].qubits;
  std::vector<double> result;
  if (channel.diagonal) {
    const std::vector<double> probabilities = state.probabilities(qubits);
    for (const auto& product : channel.products) {
      double sum = 0;
      for (std::size_t i = 0; i < probabilities.size(); ++i) sum += product[i].real() * probabilities[i];
      result.push_back(std::max(0.0, sum));
    }
    return result;
  }
  const std::vector<Complex> rho = state.reduced_density_matrix(qubits);
  const std::size_t size = std::size_t{1} << qubits.size();
  for (const auto& product : channel.products) {  // the trace of K^dagger K rho
    double sum = 0;
    for (std::size_t r = 0; r < size; ++r) {
      for (std::size_t c = 0; c < size; ++c) sum += (product[r * size + c] * rho[c * size + r]).real();
    }
    result.push_back(std::max(0.0, sum));
  }
  return result;
}

}  // namespace onehop::quantum
