// Circuits that are planned once and run with many values of their parameters.
#include "onehop/quantum/compiled.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <ranges>
#include <string>

#include "onehop/error.h"
#include "quantum/circuit/final_measurements.h"
#include "quantum/device/device_amplitudes.h"
#include "quantum/simulator/compiled_impl.h"
#include "quantum/simulator/fingerprint.h"
#include "quantum/simulator/walk.h"
#include "quantum/state/pauli_masks.h"
#include "quantum/state/precision.h"
#include "src/base/thread_count.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

// The largest states of which several run at once, on different threads or ranks.
constexpr int max_small_qubits = 16;

// The first operation that is no gate without condition, or -1.
int first_inside(const Circuit& body) {
  for (std::size_t i = 0; i < body.operations.size(); ++i) {
    const Operation& operation = body.operations[i];
    const bool plain = operation.is_gate() || operation.kind == OperationKind::barrier;
    if (!plain || !operation.condition.clbits.empty()) return static_cast<int>(i);
  }
  return -1;
}

void check_reproducible(int parts, int ranks) {
  if (parts < 0 || !std::has_single_bit(static_cast<unsigned>(parts))) {
    throw BadInput("reproducible: expected a number of ranks that is a power of two, found " + std::to_string(parts));
  }
  if (parts < ranks) {
    throw BadInput("reproducible: expected at least the number of ranks, " + std::to_string(ranks) + ", found " +
                   std::to_string(parts) + "; results are the same on all numbers of ranks up to the given one");
  }
}

}  // namespace

Compiled::Impl::Impl(const Circuit& circuit, const Group& group, const CompileOptions& the_options)
    : options(the_options), names(circuit.parameters), whole(group) {
  if (group.size() > 1) {
    require_same(group, "compile",
                 {{"circuit", circuit},
                  {"precision", options.precision},
                  {"number of ranks for reproducible results", options.reproducible}});
  }
  require_plain(options.precision, "compiled circuits and gradients");
  if (!options.state.folder.empty()) throw BadInput("expected no folder for the state of a compiled circuit");
  circuit.validate();
  inside = first_inside(split_final_measurements(circuit).body);
  stored = stored_parts(SplitProgram(with_rotations(circuit)), {.divide = false});
  Circuit body = without_jumps(stored[0].split.body.circuit);
  int per_host = -1;
  const Group part = part_for(body, group, per_host);
  state = std::make_unique<State>(part, body.qubits, options.precision, options.state);
  if (per_host >= 0) state->set_ranks_per_host(per_host);
  PlacementOptions how;
  how.bytes_per_amplitude = bytes_per_amplitude(options.precision);
  how.search_seconds = options.search_seconds;
  int parts = part.size();
  if (options.reproducible != 0 && options.state.device != "cpu") {
    throw BadInput("reproducible: expected a state on the device 'cpu', found '" + options.state.device + "'");
  }
  if (options.reproducible != 0) {
    check_reproducible(options.reproducible, group.size());
    parts = usable_ranks(body, options.reproducible);
  } else {
    how.ranks_per_host = state->ranks_per_host();
  }
  placement = place(std::move(body), parts, how);
  part_bits = placement.local_bits;
  state->set_part_bits(part_bits);
  angles.assign(placement.operations.size(), 0);
  for (std::size_t i = 0; i < placement.operations.size(); ++i) {
    if (!placement.operations[i].angles.empty()) varying.push_back(static_cast<int>(i));
  }
  for (Programs* const one : {&all_gates, &cone_gates}) {
    one->stages.resize(placement.stages.size());
    one->inverses.resize(placement.stages.size());
  }
  inverse_angles = angles;
}

std::vector<PauliSum> Compiled::Impl::on_state(std::span<const PauliSum> sums, bool hermitian) const {
  const int qubits = circuit->qubits;
  std::vector<PauliSum> own = ObservableParts(sums, stored, qubits).of(0);
  check_observables(own, placement.qubits, hermitian);
  return own;
}

std::vector<PauliSum> Compiled::Impl::flipping(const PauliSum& sum) const {
  std::map<std::vector<int>, PauliSum> by_qubits;
  for (const PauliTerm& term : sum.terms) {
    PauliTerm own{term.coefficient};
    std::vector<int> flipped;
    for (const auto& [qubit, letter] : term.paulis) {
      if (std::ranges::find(stored[0].qubits, qubit) != stored[0].qubits.end()) {
        own.paulis.emplace_back(qubit, letter);
      } else if (letter != 'Z') {
        flipped.push_back(qubit);
        if (letter == 'Y') own.coefficient *= std::complex<double>(0, 1);
      }
    }
    std::ranges::sort(flipped);
    if (!flipped.empty()) by_qubits[flipped].terms.push_back(std::move(own));
  }
  std::vector<PauliSum> all;
  for (auto& [flipped, part] : by_qubits) all.push_back(std::move(part));
  return on_state(all, false);
}

void Compiled::Impl::require_same_call(std::span<const double> values, std::span<const PauliSum> sums,
                                       std::span<const double> weights, bool variance) const {
  if (whole.size() == 1) return;
  require_same(whole, "a compiled circuit",
               {{"values of the parameters", values},
                {"observables", sums},
                {"weights", weights},
                {"choice of variances", variance}});
}

void Compiled::Impl::require_gates() const {
  if (inside < 0) return;
  throw BadInput("operation " + std::to_string(inside) + " (" +
                 circuit->operations[static_cast<std::size_t>(inside)].name +
                 "): expected gates without conditions, and measurements at the end only; simulate the circuit, or use "
                 "parameter shifts");
}

void Compiled::Impl::check(std::span<const double> values) const {
  check_values(values, names);
  for (const int index : varying) {
    const Operation& operation = placement.operations[static_cast<std::size_t>(index)];
    const Expression& expression = operation.angles.front();
    const double angle = expression.value(values);
    if (!std::isfinite(angle)) {
      throw BadInput("a gate " + operation.name + ": parameter '" +
                     names[static_cast<std::size_t>(expression.terms.front().first)] +
                     "': expected a finite angle, found " + std::to_string(angle) +
                     "; choose smaller factors or values of its parameters");
    }
  }
}

void Compiled::Impl::bind(std::span<const double> values) {
  check(values);
  for (Programs* const one : {&all_gates, &cone_gates}) {
    for (StageProgram& program : one->inverses | std::views::join) program.fresh = false;
  }
  for (const int index : varying) {
    Operation& operation = placement.operations[static_cast<std::size_t>(index)];
    operation.angle = operation.angles.front().value(values);
    angles[static_cast<std::size_t>(index)] = operation.angle;
    inverse_angles[static_cast<std::size_t>(index)] = -operation.angle;
  }
}

void Compiled::Impl::only_for(std::span<const PauliSum> sums) {
  if (cone.find(placement, sums)) {
    for (auto* const made : {&cone_gates.stages, &cone_gates.inverses}) {
      for (auto& stage : *made) stage.clear();
    }
  }
  programs = cone.has_all() ? &all_gates : &cone_gates;
}

int Compiled::Impl::number_of(std::size_t part) const {
  return static_cast<int>(static_cast<std::size_t>(state->group().rank()) * parts() + part);
}

void Compiled::Impl::make_stage(StageProgram& program, const Stage& stage, std::size_t part) const {
  std::uint64_t flips = state->flips();
  for (const int index : stage.operations) {
    if (!needs(index)) continue;
    const Operation& operation = placement.operations[static_cast<std::size_t>(index)];
    auto local = localize(operation, stage.bits, part_bits, number_of(part), flips);
    if (!local) continue;
    local->source = index;
    program.operations.push_back(std::move(*local));
  }
  program.flips = flips;
  program.compile(*state, part_bits, false);
}

void Compiled::Impl::StageProgram::compile(const State& state, int bits, bool two) {
  using Program = EngineProgram<double>;
  varies = std::ranges::any_of(operations, [](const LocalOperation& operation) { return operation.varies; });
  if (bits > (two ? Program::max_bits_of_two : Program::max_bits) || state.on_device() != nullptr) return;
  const int threads = state.engine().threads;
  with_type(state.precision(), [&]<typename T>() {
    using States = typename EngineProgram<T>::States;
    compiled =
        std::make_unique<EngineProgram<T>>(bits, std::move(operations), two ? States::two : States::one, threads);
  });
}

void Compiled::Impl::StageProgram::set_angles(std::span<const double> angles) {
  for (LocalOperation& operation : operations) {
    if (operation.varies) set_angle(operation, angles[static_cast<std::size_t>(operation.source)]);
  }
}

EngineCounters Compiled::Impl::StageProgram::run(const Impl& impl, std::size_t part, std::span<const double> angles,
                                                 const State& ket, const State* bra, std::span<double> by_angle) {
  const int threads = ket.engine().threads;
  if (ket.on_device() != nullptr) {
    set_angles(angles);
    if (bra == nullptr) return ket.on_device()->apply(operations);
    return ket.on_device()->apply_to_both(*bra->on_device(), operations, by_angle);
  }
  return with_type(impl.options.precision, [&]<typename T>() {
    const auto amplitudes = [part](const State& state) {
      return state.local<T>().subspan(part << state.part_bits(), std::size_t{1} << state.part_bits());
    };
    EngineStates<T> states{amplitudes(ket)};
    if (bra != nullptr) states = {states.ket, amplitudes(*bra), by_angle};
    if (auto* const program = std::get_if<std::unique_ptr<EngineProgram<T>>>(&compiled)) {
      if (varies && !fresh) (*program)->refill(angles, threads);
      return (*program)->run(states, threads);
    }
    if (operations.empty()) return EngineCounters{};
    set_angles(angles);
    if (bra == nullptr) return apply<T>(states.ket, operations, ket.engine());
    return apply_to_both<T>(states.ket, states.bra, operations, by_angle, ket.engine());
  });
}

void Compiled::Impl::run(std::span<const double> values) {
  bind(values);
  state->set_part_bits(part_bits);
  state->set_product(placement.first_state, placement.first_bits);
  auto& stages = programs->stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    state->exchange(placement.stages[s].swaps);
    if (stages[s].empty()) {
      std::vector<StageProgram> programs(parts());
      for (std::size_t part = 0; part < parts(); ++part) make_stage(programs[part], placement.stages[s], part);
      stages[s] = std::move(programs);
    }
    for (std::size_t part = 0; part < parts(); ++part) {
      counters.passes += stages[s][part].run(*this, part, angles, *state).passes;
      stages[s][part].fresh = false;
    }
    // A gate flips the same bits on every part.
    state->set_layout({state->bits().begin(), state->bits().end()}, stages[s].front().flips);
  }
  // Turn wires back into qubits.
  std::vector<int> bits;
  for (const int wire : placement.wires) bits.push_back(state->bits()[static_cast<std::size_t>(wire)]);
  state->set_layout(std::move(bits), state->flips());
}

Compiled::Compiled(const Circuit& circuit, const Group& group, const CompileOptions& options)
    : impl_(std::make_unique<Impl>(circuit, group, options)) {
  impl_->circuit = std::make_unique<Circuit>(circuit);
}
Compiled::Compiled(Compiled&&) noexcept = default;
Compiled& Compiled::operator=(Compiled&&) noexcept = default;
Compiled::~Compiled() = default;

const std::vector<std::string>& Compiled::parameters() const noexcept { return impl_->names; }
const Placement& Compiled::placement() const noexcept { return impl_->placement; }
int Compiled::ranks() const noexcept { return impl_->state->group().size(); }

State& Compiled::run(std::span<const double> values) {
  impl_->require_same_call(values);
  impl_->require_gates();
  impl_->use_all();
  impl_->run(values);
  impl_->state->set_part_bits(impl_->state->local_bits());
  if (impl_->state->qubits() == impl_->circuit->qubits) return *impl_->state;
  std::vector<StateFactor> factors;
  factors.push_back({impl_->new_state(), impl_->stored[0].qubits});
  factors[0].state->copy_from(*impl_->state);
  auto product = product_of(std::move(factors), impl_->circuit->qubits);
  // The caller may still hold the state of an earlier call: it is overwritten, not freed.
  if (impl_->all_qubits) {
    impl_->all_qubits->copy_from(*product);
  } else {
    impl_->all_qubits = std::move(product);
  }
  return *impl_->all_qubits;
}

std::vector<std::complex<double>> Compiled::expectations(std::span<const double> values,
                                                         std::span<const PauliSum> sums) {
  impl_->require_same_call(values, sums);
  impl_->require_gates();
  const std::vector<PauliSum> own = impl_->on_state(sums, false);
  impl_->use_all();
  impl_->run(values);
  return impl_->final_values(own);
}

std::vector<std::complex<double>> Compiled::run_many(std::span<const double> bindings, std::size_t count,
                                                     std::span<const PauliSum> sums) {
  Impl& impl = *impl_;
  impl.require_same_call(bindings, sums);
  impl.require_gates();
  const std::size_t parameters = impl.names.size();
  if (bindings.size() != count * parameters) {
    throw BadInput("expected " + std::to_string(count) + " bindings of " + std::to_string(parameters) +
                   " values, found " + std::to_string(bindings.size()) + " values");
  }
  const std::vector<PauliSum> own = impl.on_state(sums, false);
  for (std::size_t i = 0; i < count; ++i) impl.check(bindings.subspan(i * parameters, parameters));
  std::vector<std::complex<double>> results(count * sums.size());
  const auto one = [&](Impl& worker, std::size_t i) {
    worker.run(bindings.subspan(i * parameters, parameters));
    const auto values = worker.final_values(own);
    std::copy(values.begin(), values.end(), results.begin() + static_cast<std::ptrdiff_t>(i * sums.size()));
  };
  if (impl.placement.qubits > max_small_qubits) {
    impl.only_for(own);
    for (std::size_t i = 0; i < count; ++i) one(impl, i);
    return results;
  }
  const auto ranks = static_cast<std::size_t>(impl.whole.size());
  const auto rank = static_cast<std::size_t>(impl.whole.rank());
  const std::size_t begin = count * rank / ranks;
  const std::size_t end = count * (rank + 1) / ranks;
  const auto threads = static_cast<std::size_t>(base::thread_count(impl.options.state.threads, impl.whole));
  const std::size_t workers = std::clamp<std::size_t>(end - begin, 1, threads);
  while (impl.workers.size() < workers) {
    CompileOptions alone = impl.options;
    alone.state.threads = 1;
    alone.reproducible = 0;  // on one rank in any case
    impl.workers.push_back(std::make_unique<Impl>(*impl.circuit, Group::alone(), alone));
  }
  for (const auto& worker : impl.workers) worker->only_for(own);
  std::atomic<std::size_t> next{begin};
  base::ThreadPool(static_cast<int>(workers), base::WaitStyle::sleep).run([&](int thread) {
    for (std::size_t i = next++; i < end; i = next++) one(*impl.workers[static_cast<std::size_t>(thread)], i);
  });
  if (ranks > 1) sum_over_ranks(impl.whole, std::span(results));
  return results;
}

SimulationResult Compiled::simulate(std::span<const double> values, const SimulationOptions& options) {
  impl_->bind(values);
  SimulationOptions own = options;
  own.precision = impl_->options.precision;
  own.state = impl_->options.state;
  // With `reproducible` the placement may be one for more ranks; loops are placed in parts.
  if (impl_->options.reproducible != 0 || impl_->circuit->has_jumps()) {
    return quantum::simulate(bind_parameters(*impl_->circuit, values), impl_->whole, own);
  }
  // The placement lives as long as this object.
  return simulate_placed(impl_->stored, impl_->circuit->qubits, impl_->whole, own,
                         {std::shared_ptr<const void>(), &impl_->placement}, values);
}

Gradients Compiled::gradients(std::span<const double> values, std::span<const PauliSum> sums,
                              std::span<const double> weights, bool variance) {
  impl_->require_same_call(values, sums, weights, variance);
  impl_->require_gates();
  const std::vector<PauliSum> own = impl_->on_state(sums, true);
  std::vector<std::vector<PauliSum>> flips;
  std::vector<PauliSum> all = own;
  for (std::size_t i = 0; variance && i < sums.size(); ++i) {
    flips.push_back(impl_->flipping(sums[i]));
    all.insert(all.end(), flips[i].begin(), flips[i].end());
  }
  impl_->only_for(all);
  return impl_->gradients(values, own, weights, variance, flips);
}

}  // namespace onehop::quantum
