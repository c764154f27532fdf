#include "onehop/quantum/simulator.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <span>
#include <string>

#include "onehop/error.h"
#include "quantum/circuit/final_measurements.h"
#include "quantum/circuit/random.h"
#include "quantum/simulator/circuit_cache.h"
#include "quantum/simulator/compiled_impl.h"
#include "quantum/simulator/fingerprint.h"
#include "quantum/simulator/shot_memory.h"
#include "quantum/simulator/storage.h"
#include "quantum/simulator/trajectory_walk.h"
#include "quantum/simulator/walk.h"
#include "quantum/state/precision.h"
#include "quantum/state/sampling.h"
#include "src/base/one_size.h"
#include "src/base/text.h"

namespace onehop::quantum {
Circuit without_jumps(Circuit circuit) {
  for (Operation& operation : circuit.operations) {
    if (operation.kind < OperationKind::mark) continue;
    operation = Operation();
    operation.name = "barrier";
    operation.targets.resize(static_cast<std::size_t>(circuit.qubits));
    std::iota(operation.targets.begin(), operation.targets.end(), 0);
  }
  return circuit;
}

std::shared_ptr<const Placement> place_simulation(const Circuit& circuit, int ranks, const PlacementOptions& options) {
  if (circuit.has_jumps()) return placement_of(compile_cached(without_jumps(circuit), ranks, options));
  return placement_of(compile_cached(circuit, ranks, options, false));
}

std::vector<Circuit> stored_circuits(const Circuit& circuit, bool divide, int largest,
                                     std::span<const PauliSum> observables) {
  StorageOptions options;
  options.divide = divide && !circuit.has_jumps();
  options.observables = observables;
  options.largest = [largest] { return largest; };
  std::vector<Circuit> result;
  for (StoredPart& part : stored_parts(SplitProgram(circuit), options)) {
    result.push_back(std::move(part.split.body.circuit));
  }
  return result;
}

// The largest state that fits into the memory of all machines of a group. Collective.
static int largest_state(const Group& group, const SimulationOptions& options) {
  const auto here = static_cast<int>(group.local_ranks().size());
  const int mine = largest_state(group.size(), options.precision, here, options.state.device);
  return std::ranges::min(base::values_of_all(group, mine));
}

static void check_options(int qubits, const SimulationOptions& options) {
  if (options.shots < 0 || options.shots > max_shots) {
    throw BadInput("expected 0 to 2^31 shots, found " + std::to_string(options.shots));
  }
  for (const PauliSum& sum : options.observables) {
    if (sum.qubits() > qubits) {
      throw BadInput("expected observables on qubits 0 to " + std::to_string(qubits - 1) + ", found qubit " +
                     std::to_string(sum.qubits() - 1));
    }
  }
}

void check_same(const Group& group, const Argument& what, const SimulationOptions& options, const Key& others) {
  require_same(group, "simulate",
               {what,
                {"precision", options.precision},
                {"shots", options.shots},
                {"seed", options.seed},
                {"observables", options.observables},
                {"staging", options.state.staging},
                {"search_seconds", options.search_seconds},
                {"choice of profiles, checkpoints or a device",
                 hash_of(options.profile, static_cast<bool>(options.due), options.state.device == "cpu")},
                {"method, saved data, readout errors or trajectories", others}});
}

constexpr std::int64_t bytes_per_number = sizeof(std::uint64_t);  // of a shot or a trajectory
constexpr std::int64_t bytes_per_history = 72;                    // of a trajectory: its events, and its place in runs

// Adds the result of another part of a program.
static void add_part(SimulationResult& all, SimulationResult part) {
  if (part.largest_state_qubits > all.largest_state_qubits) {
    all.largest_state_qubits = part.largest_state_qubits;
    all.ranks = part.ranks;
    all.pass_seconds = part.pass_seconds;
  }
  all.seconds += part.seconds;
  all.runs = std::max(all.runs, part.runs);
  all.exchanges += part.exchanges;
  all.bytes_moved += part.bytes_moved;
  all.bytes_between_hosts += part.bytes_between_hosts;
  all.fidelity_estimate *= part.fidelity_estimate;
  all.disk.bytes_read += part.disk.bytes_read;
  all.disk.bytes_written += part.disk.bytes_written;
  all.disk.seconds += part.disk.seconds;
  all.engine.add(part.engine);
  std::ranges::move(part.profile, std::back_inserter(all.profile));
  std::ranges::move(part.made, std::back_inserter(all.made));
  all.outcomes = std::move(part.outcomes);
}

// Whether all ranks have the memory for a state of all qubits of a program.
static bool fits_everywhere(int qubits, const Group& group, const ProgramOptions& options) {
  if (options.state.device != "cpu") group.barrier();  // memory of cards is free once all ranks have left it
  const auto here = static_cast<int>(group.local_ranks().size());
  const Precision precision = is_encoded(options.precision) ? Precision::single_precision : options.precision;
  const int mine = memory_need(qubits, group.size(), precision, here, options.state).fits() ? 1 : 0;
  return std::ranges::min(base::values_of_all(group, mine)) != 0;
}

// Walks the parts one after the other. `qubits`: of the program.
static SimulationResult walk_parts(const std::vector<StoredPart>& parts, int qubits, const Group& group,
                                   const ProgramOptions& options, Walk::Style style,
                                   const std::shared_ptr<const Placement>& placement = nullptr) {
  const ObservableParts observables(options.observables, parts, qubits);
  Shots shots(parts[0].split.bits, options.shots);
  SimulationResult result;
  result.qubits = options.mixed ? 2 * qubits : qubits;
  const bool keeps = parts.size() == 1 || fits_everywhere(qubits, group, options);
  std::vector<std::vector<Complex>> values;
  for (const StoredPart& part : parts) {
    ProgramOptions own = options;
    own.observables = observables.of(values.size());
    const bool last = values.size() + 1 == parts.size();
    Walk walk(part.split, group, own, style, shots, placement, part.first_event);
    SimulationResult found = walk.run(last);
    for (const auto& [qubit, bit] : part.left) {
      if (qubit < 62 && walk.clbits()[static_cast<std::size_t>(bit)]) result.ones |= std::uint64_t{1} << qubit;
    }
    result.measures_early = result.measures_early || part.early;
    values.push_back(std::move(found.expectations));
    found.largest_state_qubits = part.split.body.circuit.qubits;
    add_part(result, std::move(found));
    if (keeps) result.factors.push_back({walk.take_state(), part.qubits});
    if (!options.mixed) continue;
    for (const int qubit : part.qubits) result.factors.back().qubits.push_back(qubits + qubit);
  }
  result.expectations = observables.join(std::move(values));
  return result;
}

// Checks that the shots of a circuit fit into memory, and runs it.
static SimulationResult walk_circuit(const std::vector<StoredPart>& parts, int qubits, const Group& group,
                                     const SimulationOptions& options,
                                     const std::shared_ptr<const Placement>& placement) {
  check_shots_fit(group, {"shots", options.shots, bytes_per_shot(parts[0].split.words())});
  ProgramOptions all;
  static_cast<SimulationOptions&>(all) = options;
  return walk_parts(parts, qubits, group, all, Walk::Style::circuit, placement);
}

SimulationResult simulate(const Circuit& circuit, const Group& group, const SimulationOptions& options) {
  const bool jumps = circuit.has_jumps();  // run_program compares
  if (group.size() > 1 && !jumps) check_same(group, {"circuit", circuit}, options);
  circuit.validate();
  circuit.require_bound();
  check_options(circuit.qubits, options);
  if (jumps) {
    if (options.due || options.resume != nullptr) {
      throw BadInput(
          "checkpoints: expected a circuit without loops whose end depends on measurements, found one; run it without "
          "a checkpoint");
    }
    ProgramOptions all;
    static_cast<SimulationOptions&>(all) = options;
    return run_program({circuit, {}, {}, {}}, group, all);
  }
  StorageOptions how;
  how.divide = !options.due && options.resume == nullptr;  // a checkpoint has one state
  how.observables = options.observables;
  how.largest = [&] { return largest_state(group, options); };
  return walk_circuit(stored_parts(SplitProgram(circuit), how), circuit.qubits, group, options, nullptr);
}

SimulationResult simulate_placed(const std::vector<StoredPart>& parts, int qubits, const Group& group,
                                 const SimulationOptions& options, const std::shared_ptr<const Placement>& placement,
                                 std::span<const double> values) {
  if (group.size() > 1) check_same(group, {"values of the parameters", values}, options);
  check_options(qubits, options);
  return walk_circuit(parts, qubits, group, options, placement);
}

Program without_idle(const Program& program) {
  return std::move(stored_parts(SplitProgram(program), {.divide = false}).front().split.body);
}

static void check_trajectories(const ProgramOptions& options) {
  if (options.trajectories < 0 || options.trajectories > max_shots) {
    throw BadInput("expected 0 to 2^31 trajectories, found " + std::to_string(options.trajectories));
  }
}

SimulationResult run_program(const Program& program, const Group& group, const ProgramOptions& options) {
  if (group.size() > 1) {
    const std::array numbers{options.trajectories, static_cast<std::int64_t>(options.mixed),
                             static_cast<std::int64_t>(options.exact)};
    check_same(group, {"circuit", hash_of(program.circuit, program.channels)}, options,
               hash_of(program.saves, program.readout, numbers));
  }
  require_plain(options.precision, "programs with noise, saved data or density matrices");
  if (!options.state.folder.empty()) throw BadInput("expected a circuit without noise for a state in a folder");
  program.validate(options.mixed);
  check_options(program.circuit.qubits, options);
  check_trajectories(options);
  SplitProgram split(program);
  const bool histories = options.histories && !options.mixed && program.has_histories();
  const std::int64_t trajectories = options.trajectories > 0 ? options.trajectories : options.shots;
  const bool counts = histories || trajectories > options.shots;  // else their numbers are gone before shots are sorted
  check_shots_fit(group, {"shots", options.shots, bytes_per_shot(split.words())},
                  {"trajectories", counts ? trajectories : 0, histories ? bytes_per_history : bytes_per_number});
  const std::vector<StoredPart> parts = stored_parts(std::move(split), {.divide = false});
  if (!histories) return walk_parts(parts, program.circuit.qubits, group, options, Walk::Style::program);
  ProgramOptions own = options;
  own.observables = ObservableParts(options.observables, parts, program.circuit.qubits).of(0);
  own.state.device = device_of_rank(group, options.state.device);
  SimulationResult result = run_histories(parts[0].split, group, own);
  for (StateFactor& factor : result.factors) factor.qubits = parts[0].qubits;
  result.qubits = program.circuit.qubits;
  result.largest_state_qubits = parts[0].split.body.circuit.qubits;
  return result;
}

void check_same(const Group& group, const Circuit& circuit, std::span<const Channel> channels, std::uint64_t seed) {
  if (group.size() == 1) return;
  require_same(group, "run", {{"circuit", hash_of(circuit, channels)}, {"seed", seed}});
}

std::vector<bool> run_program(State& state, const Program& program, bool mixed, std::uint64_t seed) {
  check_same(state.group(), program.circuit, program.channels, seed);
  program.validate(mixed);
  std::uint64_t event = 0;
  Machine::Calls calls;
  calls.choose = [&](std::span<const double> weights) { return index_of(weights, detail::uniform(seed, 0, event++)); };
  Machine::Setup setup;
  setup.mixed = mixed;
  Machine machine(program, state, std::move(calls), std::move(setup));
  static_cast<void>(machine.run());
  std::vector<bool> clbits = machine.clbits();
  clbits.resize(static_cast<std::size_t>(program.circuit.clbits));
  return clbits;
}

std::vector<bool> run(State& state, const Circuit& circuit, std::uint64_t seed) {
  const bool jumps = circuit.has_jumps();  // run_program compares
  if (!jumps) check_same(state.group(), circuit, {}, seed);
  circuit.require_bound();
  if (circuit.qubits != state.qubits()) {
    throw BadInput("the circuit has " + base::counted(circuit.qubits, "qubit") + ", the state " +
                   std::to_string(state.qubits()));
  }
  if (jumps) return run_program(state, {circuit, {}, {}, {}}, false, seed);
  const auto plan = compile_cached(circuit, state.group().size(), placement_options(state), true);
  std::uint64_t event = 0;
  Executor executor(state, plan->placement(), circuit.clbits + circuit.hidden_clbits,
                    [&](int, int, double one) { return detail::uniform(seed, 0, event++) < one ? 1 : 0; });
  executor.use_compiled(*plan);
  while (executor.step()) {
  }
  std::vector<bool> clbits = executor.clbits();
  clbits.resize(static_cast<std::size_t>(circuit.clbits));
  return clbits;
}

std::vector<std::uint64_t> sample(const State& state, std::span<const int> qubits, std::int64_t shots,
                                  std::uint64_t seed) {
  if (state.group().size() > 1) {
    require_same(state.group(), "sample", {{"qubits to measure", qubits}, {"shots", shots}, {"seed", seed}});
  }
  if (qubits.size() > 64) throw BadInput("sample: expected at most 64 qubits, found " + std::to_string(qubits.size()));
  if (shots < 0 || shots > max_shots) {
    throw BadInput("expected 0 to 2^31 shots, found " + std::to_string(shots));
  }
  for (std::size_t i = 0; i < qubits.size(); ++i) {
    const std::string name = "qubit " + std::to_string(qubits[i]);
    if (qubits[i] < 0 || qubits[i] >= state.qubits()) {
      throw BadInput(name + " does not exist; the state has " + std::to_string(state.qubits()));
    }
    if (std::find(qubits.begin(), qubits.begin() + static_cast<std::ptrdiff_t>(i), qubits[i]) !=
        qubits.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw BadInput(name + " is named twice");
    }
  }
  check_shots_fit(state.group(), {"shots", shots, 3 * bytes_per_number});  // numbers, outcomes, and their copy
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(shots));
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return sample(state, qubits, numbers, seed);
}

}  // namespace onehop::quantum
