#include "quantum/simulator/machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "onehop/error.h"

namespace onehop::quantum {
namespace {

constexpr std::int64_t max_turns = 100'000;  // of all jumps in one run

bool is_of_circuit(const Operation& operation) { return operation.kind <= OperationKind::assign; }

std::vector<Complex> complex_numbers(const std::vector<double>& values) { return {values.begin(), values.end()}; }

}  // namespace

Machine::Machine(const Program& program, State& state, Calls calls, Setup setup)
    : program_(program), state_(state), calls_(std::move(calls)), setup_(std::move(setup)) {
  const auto& operations = program.circuit.operations;
  for (std::size_t place = 0; place < operations.size(); ++place) {
    if (operations[place].kind == OperationKind::mark) marks_[operations[place].index] = place;
  }
  queues_ = setup_.mixed || !program.channels.empty();
  if (setup_.mixed) return;
  for (const Channel& channel : program.channels) channels_.emplace_back(channel);
}

bool Machine::run() {
  const auto read = static_cast<std::size_t>(program_.circuit.clbits);
  clbits_.assign(read + static_cast<std::size_t>(program_.circuit.hidden_clbits), false);
  queue_.clear();
  unsettled_ = false;
  turns_ = 0;
  const auto& operations = program_.circuit.operations;
  if (setup_.whole) {
    run_placed(*setup_.whole, operations, setup_.compiled);
    return true;
  }
  for (std::size_t place = 0; place < operations.size();) {
    if (is_of_circuit(operations[place])) {
      place = operation(place);
    } else if (!other(operations[place], place)) {
      return false;
    }
  }
  flush();
  return true;
}

void Machine::run_rest(const Placement& rest, std::vector<bool> clbits) {
  clbits_ = std::move(clbits);
  run_placed(rest, program_.circuit.operations, nullptr);
}

// Does the operations of a circuit from `place` on, and returns the place after them.
std::size_t Machine::operation(std::size_t place) {
  const auto& operations = program_.circuit.operations;
  if (setup_.mixed) {
    on_matrix(operations[place]);
    return place + 1;
  }
  if (queues_) {
    queue(operations[place]);
    return place + 1;
  }
  std::size_t end = place;
  while (end < operations.size() && is_of_circuit(operations[end])) ++end;
  run_part(place, end);
  return end;
}

// Does an operation that circuits do not have, and sets the next place. Returns false if it ends the run.
bool Machine::other(const Operation& operation, std::size_t& place) {
  ++place;
  if (operation.kind == OperationKind::mark) return true;
  settle();
  const bool holds = operation.condition.holds(clbits_);
  if (operation.kind == OperationKind::postselect) return holds;
  if (!holds) return true;
  switch (operation.kind) {
    case OperationKind::jump:
      if (++turns_ > max_turns) {
        throw Error("the loops of a run made more than 100,000 turns; does one never end?");
      }
      place = marks_.at(operation.index);
      break;
    case OperationKind::channel:
      channel(operation);
      break;
    case OperationKind::misread:
      misread(operation);
      break;
    case OperationKind::set_state:
      set_state(operation);
      break;
    default:
      flush();
      calls_.save(operation.index, saved(operation));
      break;
  }
  return true;
}

PlacementOptions Machine::placement_here() const {
  PlacementOptions options = placement_options(state_);
  options.search_seconds = setup_.search_seconds;
  return options;
}

Circuit Machine::empty_circuit() const {
  Circuit circuit;
  circuit.qubits = state_.qubits();
  if (setup_.mixed) return circuit;  // classical bits are with the machine, and `plan_density` has none
  circuit.clbits = program_.circuit.clbits;
  circuit.hidden_clbits = program_.circuit.hidden_clbits;
  return circuit;
}

void Machine::run_part(std::size_t begin, std::size_t end) {
  const std::span<const Operation> all(program_.circuit.operations);
  const PlacementOptions options = placement_here();
  auto& part = parts_[{begin, options.bits}];
  if (part == nullptr) {
    Circuit circuit = empty_circuit();
    circuit.operations.assign(all.begin() + static_cast<std::ptrdiff_t>(begin),
                              all.begin() + static_cast<std::ptrdiff_t>(end));
    part = compile_cached(std::move(circuit), state_.group().size(), options);
  }
  run_placed(part->placement(), all.subspan(begin, end - begin), part.get());
}

void Machine::run_placed(const Placement& placement, std::span<const Operation> source, PlacedCircuit* compiled) {
  Executor executor(
      state_, placement, static_cast<int>(clbits_.size()),
      [&](int index, int target, double one) { return draw(source[static_cast<std::size_t>(index)], target, one); },
      setup_.profile);
  executor.clbits() = clbits_;
  if (compiled != nullptr) executor.use_compiled(*compiled);
  do {
    if (calls_.between) calls_.between(executor);
  } while (executor.step());
  clbits_ = executor.clbits();
  counters_.add(executor.counters());
}

// Draws the outcome of a measurement or a reset, and the value that a measurement reads.
Executor::Drawn Machine::draw(const Operation& operation, int target, double one) {
  const int outcome = calls_.choose(std::array{1 - one, one});
  int read = outcome;
  if (operation.kind == OperationKind::measure && !program_.readout.empty()) {
    const auto qubit = static_cast<std::size_t>(operation.targets[static_cast<std::size_t>(target)]);
    const auto& [one_for_zero, zero_for_one] = program_.readout[qubit];
    const double wrong = outcome != 0 ? zero_for_one : one_for_zero;
    if (wrong > 0) read ^= calls_.choose(std::array{1 - wrong, wrong});
  }
  return {outcome, read};
}

// Does an operation of a circuit on a density matrix.
void Machine::on_matrix(const Operation& operation) {
  const int qubits = program_.circuit.qubits;
  const bool holds = operation.condition.holds(clbits_);
  if (operation.kind == OperationKind::assign) clbits_[static_cast<std::size_t>(operation.clbits[0])] = holds;
  if (!holds) return;
  if (operation.is_gate()) {
    Circuit both;
    add_on_both(both, operation, qubits);
    for (Operation& gate : both.operations) queue(std::move(gate));
  } else if (operation.kind == OperationKind::reset) {
    for (const int qubit : operation.targets) queue(superoperator(reset_channel(), {qubit}, qubits));
  } else if (operation.kind == OperationKind::measure) {
    flush();
    for (std::size_t target = 0; target < operation.targets.size(); ++target) {
      const int qubit = operation.targets[target];
      const std::vector<double> p = mixed_probabilities(state_, std::span(&qubit, 1));
      const double one = p[1] / (p[0] + p[1]);
      const Executor::Drawn drawn = draw(operation, static_cast<int>(target), one);
      mixed_collapse(state_, qubit, drawn.outcome, drawn.outcome != 0 ? one : 1 - one);
      clbits_[static_cast<std::size_t>(operation.clbits[target])] = drawn.read != 0;
    }
  }
}

void Machine::queue(Operation operation) {
  unsettled_ = unsettled_ || (!operation.is_gate() && operation.kind != OperationKind::barrier);
  queue_.push_back(std::move(operation));
}

// Applies the queue if it writes classical bits, or draws.
void Machine::settle() {
  if (unsettled_) flush();
}

void Machine::flush() {
  if (queue_.empty()) return;
  Circuit circuit = empty_circuit();
  circuit.operations = queue_;
  PlacementOptions options = placement_here();
  options.search_seconds = 0;
  const auto placement = find_or_place(circuit, state_.group().size(), options);
  run_placed(*placement, queue_, nullptr);
  queue_.clear();
  unsettled_ = false;
}

void Machine::channel(const Operation& operation) {
  const auto number = static_cast<std::size_t>(operation.index);
  if (setup_.mixed) {
    queue(superoperator(program_.channels[number], operation.targets, program_.circuit.qubits));
    return;
  }
  const KrausOperators& kraus = channels_[number];
  const bool depends = kraus.probabilities.empty();
  if (depends) flush();
  const std::vector<double> weights = depends ? kraus.weights(state_, operation.targets) : kraus.probabilities;
  const auto chosen = static_cast<std::size_t>(calls_.choose(weights));
  if (!depends && kraus.does_nothing[chosen]) return;
  Operation one = kraus.on(operation.targets, chosen);
  if (depends) {
    for (Complex& value : one.values) value /= std::sqrt(weights[chosen]);
  }
  queue(std::move(one));
}

void Machine::misread(const Operation& operation) {
  std::size_t row = 0;
  for (std::size_t k = 0; k < operation.clbits.size(); ++k) {
    row |= static_cast<std::size_t>(clbits_[static_cast<std::size_t>(operation.clbits[k])]) << k;
  }
  std::vector<double> weights(std::size_t{1} << operation.clbits.size());
  for (std::size_t b = 0; b < weights.size(); ++b) weights[b] = operation.values[row * weights.size() + b].real();
  const auto read = static_cast<unsigned>(calls_.choose(weights));
  for (std::size_t k = 0; k < operation.clbits.size(); ++k) {
    clbits_[static_cast<std::size_t>(operation.clbits[k])] = (read >> k & 1U) != 0;
  }
}

void Machine::set_state(const Operation& operation) {
  queue_.clear();
  const std::size_t size = operation.values.size();
  if (!setup_.mixed || size >> program_.circuit.qubits > 1) {
    return state_.set_amplitudes(operation.values, setup_.mixed ? Norm::any : Norm::check);
  }
  State pure(Group::alone(), program_.circuit.qubits);
  pure.set_amplitudes(operation.values);
  const std::vector<Complex> values = pure.gather();
  std::vector<Complex> entries;  // of the matrix, column by column
  entries.reserve(size * size);
  for (const Complex& column : values) {
    for (const Complex& row : values) entries.push_back(row * std::conj(column));
  }
  state_.set_amplitudes(entries, Norm::any);
}

// The amplitudes at these values of the targets; without any, all of them.
std::vector<Complex> Machine::amplitudes(std::vector<std::uint64_t> values, const std::vector<int>& targets) const {
  if (values.empty()) {
    if (std::is_sorted(targets.begin(), targets.end())) return state_.gather();
    values.resize(std::size_t{1} << targets.size());
    std::iota(values.begin(), values.end(), std::uint64_t{0});
  }
  for (std::uint64_t& value : values) {
    std::uint64_t index = 0;
    for (std::size_t i = 0; i < targets.size(); ++i) index |= (value >> i & 1U) << targets[i];
    value = index;
  }
  return state_.amplitudes(values);
}

// The probabilities of these values of the targets.
std::vector<Complex> Machine::weights(const std::vector<std::uint64_t>& values, const std::vector<int>& targets) const {
  std::vector<Complex> result;
  if (setup_.mixed) {
    const std::vector<double> all = mixed_probabilities(state_, targets);
    for (const std::uint64_t value : values) result.emplace_back(all.at(value));
  } else {
    for (const Complex& amplitude : amplitudes(values, targets)) result.emplace_back(std::norm(amplitude));
  }
  return result;
}

std::vector<Complex> Machine::saved(const Operation& operation) const {
  const Save& save = program_.saves[static_cast<std::size_t>(operation.index)];
  const std::vector<int>& targets = operation.targets;
  const bool mixed = setup_.mixed;
  switch (save.kind) {
    case Save::Kind::state:
    case Save::Kind::density_matrix:
      if (mixed) return mixed_density_matrix(state_, targets);
      return save.kind == Save::Kind::state ? amplitudes({}, targets) : state_.reduced_density_matrix(targets);
    case Save::Kind::amplitudes:
      return amplitudes(save.indices, targets);
    case Save::Kind::weights:
      return weights(save.indices, targets);
    case Save::Kind::probabilities:
      return complex_numbers(mixed ? mixed_probabilities(state_, targets) : state_.probabilities(targets));
    default:
      break;
  }
  const std::span<const PauliSum> sums(save.observables);
  std::vector<Complex> values = mixed ? mixed_expectations(state_, sums) : expectations(state_, sums);
  if (save.kind == Save::Kind::variances) {
    const double mean = values[0].real();
    const double variance = mixed ? values.at(1).real() - mean * mean : variances(state_, sums.first(1))[0];
    values = {mean, std::max(variance, 0.0)};
  }
  return values;
}

}  // namespace onehop::quantum
