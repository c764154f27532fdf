#include "onehop/quantum/simulator.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "quantum/circuit/final_measurements.h"
#include "quantum/circuit/random.h"
#include "quantum/simulator/circuit_cache.h"
#include "quantum/simulator/compiled_impl.h"
#include "quantum/simulator/shot_memory.h"
#include "quantum/simulator/trajectory_walk.h"
#include "quantum/simulator/walk.h"
#include "quantum/state/precision.h"
#include "quantum/state/sampling.h"
#include "src/base/text.h"

namespace onehop::quantum {
std::shared_ptr<const Placement> place_simulation(const Circuit& circuit, int ranks, const PlacementOptions& options) {
  return placement_of(compile_cached(split_final_measurements(circuit).body, ranks, options));
}

static void check_options(const Circuit& circuit, const SimulationOptions& options) {
  if (options.shots < 0 || options.shots > max_shots) {
    throw BadInput("expected 0 to 2^31 shots, found " + std::to_string(options.shots));
  }
  for (const PauliSum& sum : options.observables) {
    if (sum.qubits() > circuit.qubits) {
      throw BadInput("expected observables on qubits 0 to " + std::to_string(circuit.qubits - 1) + ", found qubit " +
                     std::to_string(sum.qubits() - 1));
    }
  }
}

constexpr std::int64_t bytes_per_number = sizeof(std::uint64_t);  // of a shot or a trajectory
constexpr std::int64_t bytes_per_history = 72;                    // of a trajectory: its events, and its place in runs

static SimulationResult walk_circuit(const Circuit& circuit, const Group& group, const SimulationOptions& options,
                                     std::shared_ptr<const Placement> placement) {
  check_options(circuit, options);
  const SplitProgram split(circuit);
  check_shots_fit(group, {"shots", options.shots, bytes_per_shot(split.words())});
  ProgramOptions all;
  static_cast<SimulationOptions&>(all) = options;
  return Walk(split, group, all, Walk::Style::circuit, std::move(placement)).run();
}

SimulationResult simulate(const Circuit& circuit, const Group& group, const SimulationOptions& options) {
  circuit.validate();
  circuit.require_bound();
  return walk_circuit(circuit, group, options, nullptr);
}

SimulationResult simulate_placed(const Circuit& circuit, const Group& group, const SimulationOptions& options,
                                 std::shared_ptr<const Placement> placement) {
  return walk_circuit(circuit, group, options, std::move(placement));
}

static void check_trajectories(const ProgramOptions& options) {
  if (options.trajectories < 0 || options.trajectories > max_shots) {
    throw BadInput("expected 0 to 2^31 trajectories, found " + std::to_string(options.trajectories));
  }
}

SimulationResult run_program(const Program& program, const Group& group, const ProgramOptions& options) {
  require_plain(options.precision, "programs with noise, saved data or density matrices");
  program.validate(options.mixed);
  check_options(program.circuit, options);
  check_trajectories(options);
  const SplitProgram split(program);
  const bool histories = options.histories && !options.mixed && program.has_histories();
  const std::int64_t trajectories = options.trajectories > 0 ? options.trajectories : options.shots;
  const bool counts = histories || trajectories > options.shots;  // else their numbers are gone before shots are sorted
  check_shots_fit(group, {"shots", options.shots, bytes_per_shot(split.words())},
                  {"trajectories", counts ? trajectories : 0, histories ? bytes_per_history : bytes_per_number});
  if (histories) return run_histories(split, group, options);
  return Walk(split, group, options, Walk::Style::program).run();
}

std::vector<bool> run_program(State& state, const Program& program, bool mixed, std::uint64_t seed) {
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
  circuit.require_bound();
  if (circuit.qubits != state.qubits()) {
    throw BadInput("the circuit has " + base::counted(circuit.qubits, "qubit") + ", the state " +
                   std::to_string(state.qubits()));
  }
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
