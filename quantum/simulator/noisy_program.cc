#include "quantum/simulator/noisy_program.h"

#include <algorithm>
#include <numeric>

#include "onehop/quantum/placement.h"
#include "onehop/quantum/simulator.h"
#include "quantum/circuit/random.h"
#include "quantum/simulator/circuit_cache.h"

namespace onehop::quantum {
namespace {

// Applies gates and Kraus operators to a state that is split over ranks.
void run_part(State& state, const Circuit& part) {
  PlacementOptions options = placement_options(state);
  options.search_seconds = 0;
  apply_placed(state, place(part, state.group().size(), options));
}

}  // namespace

NoisyProgram::NoisyProgram(const Program& program)
    : qubits_(program.circuit.qubits), channels_(program.channels.begin(), program.channels.end()) {
  channels_.emplace_back(reset_channel());
  const auto add_gate = [&](const Operation& gate) {
    steps_.push_back({static_cast<int>(gates_.size()), -1, {}});
    gates_.push_back(gate);
  };
  Operation nothing;
  nothing.kind = OperationKind::global_phase;
  for (const Operation& operation : program.circuit.operations) {
    if (operation.kind == OperationKind::barrier) continue;
    if (operation.is_gate()) {
      add_gate(operation);
      continue;
    }
    if (steps_.empty()) add_gate(nothing);  // random numbers count steps, and a channel follows a gate
    if (operation.kind == OperationKind::channel) {
      add_channel(static_cast<std::size_t>(operation.index), operation.targets);
    } else {
      for (const int qubit : operation.targets) add_channel(channels_.size() - 1, {qubit});
    }
  }
  for (const Step& step : steps_) {
    locals_before_.push_back(locals_.size());
    std::optional<LocalOperation> found;
    if (step.gate >= 0) {
      found = local(gates_[static_cast<std::size_t>(step.gate)], qubits_);
    } else if (!does_nothing(step)) {
      found = local(operation(step, channel(step).usual), qubits_);
    }
    if (found) locals_.push_back(std::move(*found));
  }
  locals_before_.push_back(locals_.size());
}

void NoisyProgram::add_channel(std::size_t channel, std::vector<int> qubits) {
  if (channels_[channel].probabilities.empty()) dependent_.push_back(steps_.size());
  steps_.push_back({-1, static_cast<int>(channel), std::move(qubits)});
}

const KrausOperators& NoisyProgram::channel(const Step& step) const {
  return channels_[static_cast<std::size_t>(step.channel)];
}

bool NoisyProgram::does_nothing(const Step& step) const { return channel(step).does_nothing[channel(step).usual]; }

std::optional<LocalOperation> NoisyProgram::local(const Operation& operation, int qubits) {
  std::vector<int> bits(static_cast<std::size_t>(qubits));
  std::iota(bits.begin(), bits.end(), 0);
  std::uint64_t flips = 0;
  return localize(operation, bits, qubits, 0, flips);
}

Operation NoisyProgram::operation(const Step& step, std::uint32_t op) const {
  return channel(step).on(step.qubits, op);
}

std::size_t NoisyProgram::next_dependent(std::size_t from) const {
  const auto found = std::lower_bound(dependent_.begin(), dependent_.end(), from);
  return found == dependent_.end() ? steps_.size() : *found;
}

std::uint32_t NoisyProgram::default_operator(std::size_t step) const { return channel(steps_[step]).usual; }

std::vector<NoiseEvent> NoisyProgram::draw(std::uint64_t seed, std::uint64_t trajectory) const {
  std::vector<NoiseEvent> events;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (steps_[s].channel < 0) continue;
    const KrausOperators& drawn = channel(steps_[s]);
    if (drawn.probabilities.empty()) continue;
    // The default operator has the lowest numbers, the others follow in their order.
    const double number = detail::uniform(seed, trajectory, s) - drawn.probabilities[drawn.usual];
    if (number < 0) continue;
    const std::uint32_t other = other_operator(drawn.probabilities, drawn.usual, number);
    if (other != drawn.usual) events.push_back({static_cast<std::uint32_t>(s), other});
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
    } else if (!does_nothing(step)) {
      part.operations.push_back(operation(step, channel(step).usual));
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
  return channel(steps_[step]).weights(state, steps_[step].qubits);
}

}  // namespace onehop::quantum
