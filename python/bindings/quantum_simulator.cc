#include "onehop/quantum/simulator.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/unique_ptr.h>

#include "onehop/error.h"
#include "python/bindings/bindings.h"
#include "python/bindings/quantum_profile.h"
#include "quantum/simulator/plan_cache.h"

using onehop::Group;
using onehop::quantum::Branch;
using onehop::quantum::CheckpointState;
using onehop::quantum::Circuit;
using onehop::quantum::Complex;
using onehop::quantum::Outcomes;
using onehop::quantum::PauliSum;
using onehop::quantum::PauliTerm;
using onehop::quantum::Precision;
using onehop::quantum::Progress;
using onehop::quantum::SimulationOptions;
using onehop::quantum::SimulationResult;
using onehop::quantum::State;
using onehop::quantum::StateOptions;

namespace {

using release = nb::call_guard<nb::gil_scoped_release>;
template <typename T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
using Indices = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Amplitudes = nb::ndarray<const Complex, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
Array<T> as_array(std::vector<T> values) {
  auto* held = new std::vector<T>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {held->data(), {held->size()}, owner};
}

// Calls a function without the GIL and converts its vector to an array.
template <typename Function>
auto computed(Function&& function) {
  decltype(function()) values;
  {
    const nb::gil_scoped_release released;
    values = function();
  }
  return as_array(std::move(values));
}

Precision precision_from(const std::string& name) {
  if (name == "single") return Precision::single_precision;
  if (name == "double") return Precision::double_precision;
  throw onehop::BadInput("expected the precision 'single' or 'double', found '" + name + "'");
}

StateOptions state_options(int threads, std::int64_t staging) {
  StateOptions options;
  options.threads = threads;
  if (staging > 0) options.staging = staging;
  return options;
}

void bind_observable(nb::module_& module) {
  nb::class_<PauliSum>(
      module, "PauliSum",
      "A weighted sum of Pauli strings.\n\n"
      "Parameters\n----------\n"
      "terms : sequence of (complex, sequence of (int, str))\n    Coefficient, and qubit and letter (X, "
      "Y or Z) of each factor.\n\n"
      "Raises\n------\n"
      "BadInput\n    A letter is not X, Y or Z.")
      .def(
          "__init__",
          [](PauliSum* self, const std::vector<std::pair<Complex, std::vector<std::pair<int, std::string>>>>& terms) {
            PauliSum sum;
            for (const auto& [coefficient, paulis] : terms) {
              PauliTerm term{coefficient};
              for (const auto& [qubit, letter] : paulis) {
                if (letter.size() != 1 || std::string("XYZ").find(letter) == std::string::npos) {
                  throw onehop::BadInput("expected the letter X, Y or Z in a Pauli string, found '" + letter + "'");
                }
                term.paulis.emplace_back(qubit, letter.front());
              }
              sum.terms.push_back(std::move(term));
            }
            new (self) PauliSum(std::move(sum));
          },
          "terms"_a)
      .def_static("parse", &PauliSum::parse, "text"_a,
                  "Parse text such as `0.5 X0 Z2 - Y1`. Raises BadInput if the text has another form.")
      .def_prop_ro("qubits", &PauliSum::qubits, "Number of qubits that the sum needs: one more than the highest qubit.")
      .def("__len__", [](const PauliSum& sum) { return sum.terms.size(); })
      .def_prop_ro(
          "terms",
          [](const PauliSum& sum) {
            nb::list list;
            for (const PauliTerm& term : sum.terms) {
              nb::list paulis;
              for (const auto& [qubit, letter] : term.paulis)
                paulis.append(nb::make_tuple(qubit, std::string(1, letter)));
              list.append(nb::make_tuple(term.coefficient, nb::tuple(paulis)));
            }
            return nb::tuple(list);
          },
          nb::sig("def terms(self) -> tuple[tuple[complex, tuple[tuple[int, str], ...]], ...]"),
          "Coefficient, and qubit and letter of each factor, of every term.");
}

void check_applicable(const Circuit& circuit) {
  circuit.validate(false);
  for (const auto& operation : circuit.operations) {
    const bool plain = operation.is_gate() || operation.kind == onehop::quantum::OperationKind::barrier;
    if (!plain || !operation.condition.clbits.empty()) {
      throw onehop::BadInput("expected gates without conditions, found '" + operation.name +
                             "': a measurement, a reset, an assignment or an operation with a condition");
    }
  }
}

void bind_state(nb::module_& module) {
  nb::class_<State>(module, "State",
                    "A state vector that is split over the ranks of a group; see `onehop.quantum.State`.\n\n"
                    "Parameters\n----------\n"
                    "group : Group\n    Ranks that hold the state, a power of two of them.\n"
                    "qubits : int\n    Number of qubits.\n"
                    "precision : str\n    \"double\" or \"single\".\n"
                    "threads : int\n    Threads per rank; 0: the rank's share of the cores.\n"
                    "staging : int\n    Maximum number of bytes that an exchange buffers per partner; 0: 8 MiB.\n\n"
                    "Raises\n------\n"
                    "BadInput\n    The number of ranks is no power of two, or exceeds the number of amplitudes.\n"
                    "Error\n    The memory of a machine does not suffice. Nothing has been allocated then.")
      .def(
          "__init__",
          [](State* self, const Group& group, int qubits, const std::string& precision, int threads,
             std::int64_t staging) {
            const Precision which = precision_from(precision);
            const nb::gil_scoped_release released;
            new (self) State(group, qubits, which, state_options(threads, staging));
          },
          "group"_a, "qubits"_a, "precision"_a, "threads"_a, "staging"_a)
      .def_prop_ro("qubits", &State::qubits, "Number of qubits.")
      .def_prop_ro("local_bits", &State::local_bits, "Number of bits of an amplitude's place within a rank.")
      .def_prop_ro(
          "ranks", [](const State& s) { return s.group().size(); }, "Number of ranks.")
      .def_prop_ro(
          "rank", [](const State& s) { return s.group().rank(); }, "Number of this rank.")
      .def_prop_ro(
          "precision",
          [](const State& s) { return s.precision() == Precision::single_precision ? "single" : "double"; },
          "Precision of an amplitude: \"double\" or \"single\".")
      .def_prop_ro(
          "bits", [](const State& s) { return as_tuple(s.bits()); }, nb::sig("def bits(self) -> tuple[int, ...]"),
          "Bit of each qubit in an amplitude's place. Bits from `local_bits` on are those of the rank number.")
      .def_prop_ro("flips", &State::flips, "Bits of an amplitude's place that hold the opposite of their qubit.")
      .def_prop_ro(
          "exchanges", [](const State& s) { return s.counters().exchanges; },
          "Number of exchanges between ranks so far.")
      .def_prop_ro(
          "bytes_sent", [](const State& s) { return s.counters().bytes_sent; },
          "Bytes that this rank has sent in the exchanges.")
      .def_prop_ro(
          "bytes_between_hosts", [](const State& s) { return s.counters().bytes_between_hosts; },
          "Part of these bytes that went to ranks on other hosts.")
      .def_prop_rw("ranks_per_host", &State::ranks_per_host, &State::set_ranks_per_host,
                   "Ranks on each host, for placements on this state; see the function of this name.")
      .def(
          "local",
          [](nb::handle_t<State> self) -> nb::object {
            const auto& state = nb::cast<const State&>(self);
            if (state.precision() == Precision::single_precision) {
              const auto span = state.local<float>();
              return nb::cast(Array<std::complex<float>>(span.data(), {span.size()}, self), nb::rv_policy::reference);
            }
            const auto span = state.local<double>();
            return nb::cast(Array<Complex>(span.data(), {span.size()}, self), nb::rv_policy::reference);
          },
          "Return a view of this rank's amplitudes, in the order that `bits` and `flips` define. Not collective.")
      .def("set_layout", &State::set_layout, "bits"_a, "flips"_a,
           "Declare other `bits` and `flips` without moving any amplitude. Not collective.")
      .def("set_basis_state", &State::set_basis_state, "index"_a, release(),
           "Set the state to the basis state with this index.")
      .def(
          "set_amplitudes",
          [](State& s, const Amplitudes& amplitudes) {
            const std::span<const Complex> values(amplitudes.data(), amplitudes.size());
            const nb::gil_scoped_release released;
            s.set_amplitudes(values);
          },
          "amplitudes"_a,
          "Set all 2^qubits amplitudes by index, without normalising them. Every rank passes all of them.")
      .def(
          "run",
          [](State& s, const Circuit& circuit, std::uint64_t seed) {
            const std::vector<bool> bits = run(s, circuit, seed);
            return std::vector<int>(bits.begin(), bits.end());
          },
          "circuit"_a, "seed"_a, release(),
          "Run a circuit; measurements collapse the state. Returns the classical bits. Collective.")
      .def(
          "apply",
          [](State& s, const Circuit& circuit, double search_seconds) {
            check_applicable(circuit);
            onehop::quantum::PlacementOptions options;
            options.bytes_per_amplitude = bytes_per_amplitude(s.precision());
            options.bits.assign(s.bits().begin(), s.bits().end());
            options.search_seconds = search_seconds;
            options.ranks_per_host = s.ranks_per_host();
            const auto placement = find_or_place(circuit, s.group().size(), options);
            onehop::quantum::Executor executor(s, *placement, 0, [](int, int, double) { return 0; });
            while (executor.step()) {
            }
          },
          "circuit"_a, "search_seconds"_a, release(),
          "Apply a circuit of gates without conditions. Their matrices need not be unitary. Collective.")
      .def("restore_order", &State::restore_order, release(),
           "Move the amplitudes so that qubit i is at bit i of an amplitude's place. Collective.")
      .def("norm_squared", &State::norm_squared, release(), "Return <state|state>. Collective.")
      .def(
          "amplitudes",
          [](const State& s, const Indices& indices) {
            const std::span<const std::uint64_t> list(indices.data(), indices.size());
            return computed([&] { return s.amplitudes(list); });
          },
          "indices"_a, "Return the amplitudes with these indices (uint64). Collective.")
      .def(
          "gather", [](const State& s) { return computed([&] { return s.gather(); }); },
          "Return all 2^qubits amplitudes by index, on every rank. Collective.")
      .def(
          "probabilities",
          [](const State& s, const std::vector<int>& qubits) {
            return computed([&] { return s.probabilities(qubits); });
          },
          "qubits"_a,
          "Return the probabilities of the 2^k values of k qubits (at most 24), the first one least significant. "
          "Collective.")
      .def("inner_product", &State::inner_product, "other"_a, release(),
           "Return <self|other>; the layout of `other` becomes that of this state. Raises BadInput if the states "
           "differ in "
           "size, precision or ranks. Collective.")
      .def(
          "reduced_density_matrix",
          [](State& s, const std::vector<int>& qubits) {
            return computed([&] { return s.reduced_density_matrix(qubits); });
          },
          "qubits"_a,
          "Return the reduced density matrix of k qubits (at most 12): 4^k numbers, row-major, the first qubit least "
          "significant. Collective.")
      .def(
          "expectations", [](State& s, const std::vector<PauliSum>& sums) { return expectations(s, sums); }, "sums"_a,
          release(), "Return the expectation value of each observable. Collective.")
      .def(
          "variances", [](const State& s, const std::vector<PauliSum>& sums) { return variances(s, sums); }, "sums"_a,
          release(), "Return the variance of each Hermitian observable. Needs a second state. Collective.")
      .def(
          "sample",
          [](const State& s, const std::vector<int>& qubits, std::int64_t shots, std::uint64_t seed) {
            return computed([&] { return sample(s, qubits, shots, seed); });
          },
          "qubits"_a, "shots"_a, "seed"_a,
          "Sample a measurement of some qubits (at most 64) `shots` times, without changing the state. Bit i of an "
          "outcome "
          "is the value of qubits[i]. Collective.");
}

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

std::vector<std::uint64_t> words(const Indices& array) { return {array.data(), array.data() + array.size()}; }

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
          [](CheckpointState& s, const Indices& array) { s.outcomes = words(array); }, nb::rv_policy::automatic,
          "The classical bits of every shot in words of 64; 0 for shots whose run is not finished.")
      .def_prop_ro(
          "waiting", [](const CheckpointState& s) { return as_list(s.waiting); },
          nb::sig("def waiting(self) -> list[tuple[list[bool], NDArray[numpy.uint64]]]"),
          "Unfinished runs: the measurement record so far and the shots. The last one is in progress.")
      .def(
          "add_waiting",
          [](CheckpointState& s, std::vector<bool> record, const Indices& shots) {
            s.waiting.push_back({std::move(record), words(shots)});
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
  bind_observable(module);
  bind_state(module);
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
      .def_ro("runs", &SimulationResult::runs, "Number of runs: one for each measurement record.")
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
