#include "onehop/quantum/simulator.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/unique_ptr.h>

#include "python/bindings/quantum_arrays.h"
#include "python/bindings/quantum_profile.h"

using onehop::Group;
using onehop::quantum::Branch;
using onehop::quantum::CheckpointState;
using onehop::quantum::Circuit;
using onehop::quantum::Outcomes;
using onehop::quantum::PauliSum;
using onehop::quantum::Progress;
using onehop::quantum::SimulationOptions;
using onehop::quantum::SimulationResult;
using onehop::quantum::State;

namespace {

// Checks for signals, and calls the progress callback if there is one.
void tell(const nb::object& progress, const Progress& p) {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (!progress.is_none()) progress(p.done, p.total, p.run, p.shots_done);
}

// Shots become arrays, because there may be millions of them.
nb::list as_list(const std::vector<Branch>& branches) {
  nb::list list;
  for (const Branch& branch : branches) list.append(nb::make_tuple(branch.record, as_array(branch.shots)));
  return list;
}

std::vector<std::uint64_t> words(const QuantumIndices& array) { return {array.data(), array.data() + array.size()}; }

void bind_checkpoint_state(nb::module_& module) {
  nb::class_<CheckpointState>(
      module, "CheckpointState",
      "Everything that a simulation needs besides the amplitudes to continue from a point between two steps.")
      .def(nb::init<>())
      .def_rw("bits", &CheckpointState::bits, "The bit of each wire.")
      .def_rw("done", &CheckpointState::done, "For each operation of the circuit, whether this run has done it.")
      .def_rw("clbits", &CheckpointState::clbits, "The classical bits of this run, hidden ones included.")
      .def_rw("events", &CheckpointState::events, "The number of outcomes drawn in this run.")
      .def_rw("runs", &CheckpointState::runs, "The number of finished runs.")
      .def_rw("expectations", &CheckpointState::expectations, "Weighted sums over the finished runs.")
      .def_prop_rw(
          "outcomes", [](const CheckpointState& s) { return as_array(s.outcomes); },
          [](CheckpointState& s, const QuantumIndices& array) { s.outcomes = words(array); }, nb::rv_policy::automatic,
          "The classical bits of every shot in words of 64; 0 for shots whose run is not finished.")
      .def_prop_ro(
          "waiting", [](const CheckpointState& s) { return as_list(s.waiting); },
          nb::sig("def waiting(self) -> list[tuple[list[int], NDArray[numpy.uint64]]]"),
          "Unfinished runs: the measurement record so far and the shots. The last one is in progress.")
      .def(
          "add_waiting",
          [](CheckpointState& s, std::vector<int> record, const QuantumIndices& shots) {
            s.waiting.push_back({std::move(record), words(shots), 1});
          },
          "record"_a, "shots"_a, "Appends an unfinished run.");
}

// Sets the checkpoint callbacks from Python objects; `due` None: no checkpoints are written.
void set_checkpoints(SimulationOptions& options, const nb::object& due, const nb::object& keep,
                     const nb::object& restore) {
  if (!due.is_none()) {
    options.due = [&due] {
      const nb::gil_scoped_acquire gil;
      return nb::cast<bool>(due());
    };
    options.keep = [&keep](const State& state, const CheckpointState& checkpoint) {
      const nb::gil_scoped_acquire gil;
      keep(nb::cast(&state, nb::rv_policy::reference), nb::cast(&checkpoint, nb::rv_policy::reference));
    };
  }
  options.restore = [&restore](const State& state) {
    const nb::gil_scoped_acquire gil;
    restore(nb::cast(&state, nb::rv_policy::reference));
  };
}

SimulationResult simulate(const Circuit& circuit, const Group& group, std::int64_t shots, std::uint64_t seed,
                          const std::string& precision, const std::vector<PauliSum>& observables, int threads,
                          std::int64_t staging, double search_seconds, bool profile, const nb::object& progress,
                          const nb::object& due, const nb::object& keep, const CheckpointState* resume,
                          const nb::object& restore) {
  SimulationOptions options;
  options.profile = profile;
  options.shots = shots;
  options.seed = seed;
  options.precision = precision_from(precision);
  options.observables = observables;
  options.state = state_options(threads, staging);
  options.search_seconds = search_seconds;
  options.progress = [&progress](const Progress& p) { tell(progress, p); };
  options.resume = resume;
  set_checkpoints(options, due, keep, restore);
  const nb::gil_scoped_release released;
  return onehop::quantum::simulate(circuit, group, options);
}

}  // namespace

void bind_quantum_simulator(nb::module_& module) {
  bind_checkpoint_state(module);
  nb::class_<Outcomes>(module, "Outcomes", "The outcomes of all shots. An outcome is the value of the classical bits.")
      .def_ro("clbits", &Outcomes::clbits, "Number of classical bits.")
      .def_prop_ro(
          "values",
          [](const Outcomes& o) {
            nb::list list;
            for (const auto& words : o.values) {
              nb::object number = nb::int_(0);
              for (std::size_t w = words.size(); w-- > 0;) number = (number << nb::int_(64)) | nb::int_(words[w]);
              list.append(number);
            }
            return list;
          },
          nb::sig("def values(self) -> list[int]"), "Distinct outcomes in ascending order; bit i is classical bit i.")
      .def_prop_ro(
          "counts", [](const Outcomes& o) { return as_array(o.counts); }, nb::rv_policy::automatic,
          "Number of shots with each of `values`.")
      .def_prop_ro(
          "of_shot", [](const Outcomes& o) { return as_array(o.of_shot); }, nb::rv_policy::automatic,
          "Index into `values` of each shot's outcome.");
  nb::class_<SimulationResult>(module, "SimulationResult", "The result of `simulate`; the same on every rank.")
      .def_ro("outcomes", &SimulationResult::outcomes, "Outcomes of the shots.")
      .def_prop_ro(
          "expectations", [](const SimulationResult& r) { return as_array(r.expectations); }, nb::rv_policy::automatic,
          "Expectation value of each observable.")
      .def_ro("seconds", &SimulationResult::seconds, "Time for everything after the placement.")
      .def_ro("ranks", &SimulationResult::ranks, "Number of ranks that share the state.")
      .def_ro("workers", &SimulationResult::workers, "Number of states that are computed at the same time.")
      .def_ro("runs", &SimulationResult::runs, "Number of runs: one for each measurement record.")
      .def_ro("made", &SimulationResult::made, "The runs of a program; of a circuit none.")
      .def_ro("exchanges", &SimulationResult::exchanges, "Number of exchanges between ranks in all runs.")
      .def_ro("bytes_moved", &SimulationResult::bytes_moved, "Bytes that all ranks together have sent.")
      .def_ro("bytes_between_hosts", &SimulationResult::bytes_between_hosts,
              "Part of these bytes that was sent from one host to another.")
      .def_prop_ro(
          "passes", [](const SimulationResult& r) { return r.engine.passes; },
          "Number of passes over a rank's amplitudes.")
      .def_prop_ro(
          "engine_seconds", [](const SimulationResult& r) { return r.engine.seconds; },
          "Time of the passes on this rank.")
      .def_ro("pass_seconds", &SimulationResult::pass_seconds,
              "Minimum time of a pass, measured on all ranks at once; 0 without `profile`.")
      .def_prop_ro(
          "profile",
          [](const SimulationResult& r) {
            nb::list list;
            for (const auto& entry : r.profile) list.append(profile_dict(entry));
            return list;
          },
          nb::sig("def profile(self) -> list[dict[str, Any]]"),
          "Timed steps of this rank in the order in which they ended; empty without `profile`.")
      .def(
          "take_state", [](SimulationResult& r) { return std::move(r.state); },
          "Return the state after the last run. It can be taken once.");
  module.def("ranks_per_host", &onehop::quantum::ranks_per_host, "group"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Return the number of ranks on each host; 0 unless every host has the same number of ranks, a power of "
             "two, one after the other. Collective; the same on every rank.");
  module.def(
      "simulate", &simulate, "circuit"_a, "group"_a, nb::kw_only(), "shots"_a = 0, "seed"_a = 0,
      "precision"_a = "double", "observables"_a = std::vector<PauliSum>(), "threads"_a = 0, "staging"_a = 0,
      "search_seconds"_a = 1.0, "profile"_a = false, "progress"_a.none() = nb::none(), "due"_a.none() = nb::none(),
      "keep"_a.none() = nb::none(), "resume"_a.none() = nb::none(), "restore"_a.none() = nb::none(),
      "Run a circuit from |0...0>. Collective; see `onehop.quantum.simulate`.\n\n"
      "Parameters\n----------\n"
      "circuit : Circuit\n    Circuit to run.\n"
      "group : Group\n    Ranks that hold the state, a power of two of them.\n"
      "shots : int\n    Number of samples of the measurement outcomes.\n"
      "seed : int\n    The same seed gives the same shots on every number of ranks.\n"
      "precision : str\n    \"double\" or \"single\".\n"
      "observables : sequence of PauliSum\n    Observables to evaluate.\n"
      "threads : int\n    Threads per rank; 0: the rank's share of the cores.\n"
      "staging : int\n    Maximum number of bytes that an exchange buffers per partner; 0: 8 MiB.\n"
      "search_seconds : float\n    Approximate time to search for a placement that moves fewer bytes.\n"
      "profile : bool\n    Record the time of each pass and exchange.\n"
      "progress : callable, optional\n    Called as progress(done, total, run, shots_done).\n"
      "due : callable, optional\n    Returns whether to save a checkpoint now; must agree on all ranks.\n"
      "keep : callable, optional\n    Saves a checkpoint, called as keep(state, checkpoint_state). Needed with "
      "`due`.\n"
      "resume : CheckpointState, optional\n    Checkpoint to resume from.\n"
      "restore : callable, optional\n    Writes the checkpoint's amplitudes, called as restore(state). Needed with "
      "`resume`.\n\n"
      "Raises\n------\n"
      "BadInput\n    The circuit or an option is invalid.\n"
      "Error\n    The memory does not suffice. Nothing has run then.");
}
