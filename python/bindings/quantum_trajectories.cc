#include "onehop/quantum/trajectories.h"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include "python/bindings/quantum_arrays.h"

using onehop::Group;
using onehop::quantum::Circuit;
using onehop::quantum::Complex;
using onehop::quantum::History;
using onehop::quantum::NoisyCircuit;
using onehop::quantum::PauliSum;
using onehop::quantum::TrajectoryOptions;
using onehop::quantum::TrajectoryResult;

namespace {

using Channels = std::vector<std::pair<std::vector<std::vector<Complex>>, std::vector<double>>>;
using Uses = std::vector<std::tuple<int, int, std::vector<int>>>;

std::unique_ptr<TrajectoryResult> run(const Circuit& circuit, const Channels& channels, const Uses& uses,
                                      const std::vector<std::pair<int, int>>& measured, const Group& group,
                                      std::int64_t trajectories, std::int64_t shots, std::uint64_t seed,
                                      const std::string& precision, const std::vector<PauliSum>& observables,
                                      int threads, std::int64_t memory) {
  NoisyCircuit noisy{circuit, {}, {}, measured};
  for (const auto& [operators, probabilities] : channels) noisy.channels.push_back({operators, probabilities});
  for (const auto& [gate, channel, qubits] : uses) noisy.uses.push_back({gate, channel, qubits});
  TrajectoryOptions options;
  options.precision = precision_from(precision);
  options.trajectories = trajectories;
  options.shots = shots;
  options.seed = seed;
  options.observables = observables;
  options.state.threads = threads;
  options.memory = memory;
  const nb::gil_scoped_release released;
  return std::make_unique<TrajectoryResult>(onehop::quantum::simulate_trajectories(noisy, group, options));
}

}  // namespace

void bind_quantum_trajectories(nb::module_& module) {
  nb::class_<TrajectoryResult>(module, "TrajectoryResult",
                               "The result of `simulate_trajectories`; the same on every rank.")
      .def_prop_ro(
          "counts",
          [](const TrajectoryResult& r) {
            std::vector<std::int64_t> counts;
            for (const History& history : r.histories) counts.push_back(history.count);
            return counts;
          },
          "Number of trajectories of each history, in the order of the histories' first trajectories.")
      .def_prop_ro(
          "values",
          [](const TrajectoryResult& r) {
            std::vector<Complex> values;
            for (const History& history : r.histories) {
              values.insert(values.end(), history.values.begin(), history.values.end());
            }
            return as_rows(std::move(values), r.histories.size());
          },
          nb::rv_policy::automatic, "Expectation values, shape (histories, observables).")
      .def_prop_ro(
          "outcomes",
          [](const TrajectoryResult& r) {
            const auto words = static_cast<std::size_t>(r.words);
            return as_rows(r.outcomes, words == 0 ? 0 : r.outcomes.size() / words);
          },
          nb::rv_policy::automatic, "Classical bits of each shot, in words of 64, shape (shots, words).")
      .def_ro("seconds", &TrajectoryResult::seconds, "Time of everything.")
      .def_ro("ranks", &TrajectoryResult::ranks, "Number of ranks that share a state.")
      .def_ro("workers", &TrajectoryResult::workers, "Number of states that are computed at the same time.")
      .def_ro("exchanges", &TrajectoryResult::exchanges, "Number of exchanges of this rank's states.")
      .def_ro("bytes_moved", &TrajectoryResult::bytes_moved, "Bytes that all ranks together have sent.")
      .def_ro("bytes_between_hosts", &TrajectoryResult::bytes_between_hosts,
              "Part of these bytes that was sent from one host to another.")
      .def(
          "take_state", [](TrajectoryResult& r) { return std::move(r.state); },
          "Return a final state, None on a rank without work. It can be taken once.");
  module.def("simulate_trajectories", &run, "circuit"_a, "channels"_a, "uses"_a, "measured"_a, "group"_a, nb::kw_only(),
             "trajectories"_a, "shots"_a, "seed"_a, "precision"_a = "double", "observables"_a = std::vector<PauliSum>(),
             "threads"_a = 0, "memory"_a = 0,
             "Run trajectories of a noisy circuit from |0...0>. Collective; see `onehop.quantum.simulate_trajectories`."
             "\n\n"
             "Parameters\n----------\n"
             "circuit : Circuit\n    Circuit of gates without conditions.\n"
             "channels : list of (list of list of complex, list of float)\n"
             "    Kraus operators, row by row, and their probabilities if these do not depend on the state.\n"
             "uses : list of (int, int, list of int)\n"
             "    Index of a gate, the channel after it, and its qubits; by ascending gate.\n"
             "measured : list of (int, int)\n    Classical bit and qubit of each measurement at the end.\n"
             "group : Group\n    Ranks that divide the work.\n"
             "trajectories, shots, seed, precision, observables, threads\n"
             "    As for `onehop.quantum.simulate_trajectories`.\n"
             "memory : int\n    Bytes per rank for states; 0: half of what is available.\n\n"
             "Raises\n------\n"
             "BadInput\n    The input is invalid.\n"
             "Error\n    The memory does not suffice.");
}
