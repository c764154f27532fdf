#include "onehop/quantum/program.h"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>

#include "python/bindings/quantum_arrays.h"
#include "python/bindings/quantum_profile.h"
#include "quantum/circuit/final_measurements.h"
#include "quantum/simulator/fingerprint.h"
#include "quantum/simulator/shots.h"
#include "quantum/state/sampling.h"

using onehop::Group;
using onehop::quantum::Branch;
using onehop::quantum::CheckpointState;
using onehop::quantum::Circuit;
using onehop::quantum::Outcomes;
using onehop::quantum::ProgramOptions;
using onehop::quantum::Progress;
using onehop::quantum::SimulationResult;

// The trait of the standard library is true for a vector whose elements cannot be copied.
template <>
struct nb::detail::is_copy_constructible<SimulationResult> : std::false_type {};

namespace {

using OutcomesParts =
    std::tuple<int, std::vector<std::vector<std::uint64_t>>, std::vector<std::int64_t>, std::vector<std::uint32_t>>;

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
      .def_rw("bits", &CheckpointState::bits)
      .def_rw("done", &CheckpointState::done)
      .def_rw("clbits", &CheckpointState::clbits)
      .def_rw("events", &CheckpointState::events)
      .def_rw("runs", &CheckpointState::runs)
      .def_rw("fidelity_estimate", &CheckpointState::fidelity_estimate)
      .def_rw("expectations", &CheckpointState::expectations)
      .def_prop_rw(
          "outcomes", [](const CheckpointState& s) { return as_array(s.outcomes); },
          [](CheckpointState& s, const QuantumIndices& array) { s.outcomes = words(array); }, nb::rv_policy::automatic)
      .def_prop_ro(
          "waiting", [](const CheckpointState& s) { return as_list(s.waiting); },
          nb::sig("def waiting(self) -> list[tuple[list[int], NDArray[numpy.uint64]]]"))
      .def(
          "add_waiting",
          [](CheckpointState& s, std::vector<int> record, const QuantumIndices& shots) {
            s.waiting.push_back({std::move(record), words(shots), 1});
          },
          "record"_a, "shots"_a);
}

// A function of Python for C++, which has no GIL. Copies share the object; the options, their last owner, have the GIL.
template <typename Result, typename... Args>
std::function<Result(Args...)> function_of(nb::object function) {
  return [held = std::make_shared<nb::object>(std::move(function))](Args... args) -> Result {
    const nb::gil_scoped_acquire gil;
    const nb::object result = (*held)(nb::cast(args, nb::rv_policy::reference)...);
    if constexpr (!std::is_void_v<Result>) return nb::cast<Result>(result);
  };
}

nb::object unread(const ProgramOptions& /*options*/) { return nb::none(); }

template <typename Result, typename... Args, typename Options>
auto callback(std::function<Result(Args...)> Options::* field) {
  return
      [field](ProgramOptions& o, nb::object function) { o.*field = function_of<Result, Args...>(std::move(function)); };
}

// Options are properties, whose setters name a value of the wrong type.
void bind_options(nb::module_& module) {
  nb::class_<ProgramOptions>(module, "ProgramOptions", "The options of `simulate` and `run_program`.")
      .def(nb::init<>())
      .def_rw("shots", &ProgramOptions::shots)
      .def_rw("seed", &ProgramOptions::seed)
      .def_prop_rw("precision", unread,
                   [](ProgramOptions& o, const std::string& name) { o.precision = precision_from(name); })
      .def_rw("observables", &ProgramOptions::observables)
      .def_prop_rw("threads", unread, [](ProgramOptions& o, int threads) { o.state.threads = threads; })
      .def_prop_rw("staging", unread,
                   [](ProgramOptions& o, std::int64_t staging) {
                     if (staging > 0) o.state.staging = staging;
                   })
      .def_prop_rw("state_folder", unread,
                   [](ProgramOptions& o, std::string folder) { o.state.folder = std::move(folder); })
      .def_prop_rw("state_file", unread, [](ProgramOptions& o, std::string file) { o.state.file = std::move(file); })
      .def_prop_rw("state_kept", unread, [](ProgramOptions& o, int number) { o.state.kept = number; })
      .def_prop_rw("state_memory", unread, [](ProgramOptions& o, std::int64_t memory) { o.state.memory = memory; })
      .def_prop_rw("device", unread, [](ProgramOptions& o, std::string device) { o.state.device = std::move(device); })
      .def_rw("search_seconds", &ProgramOptions::search_seconds)
      .def_rw("profile", &ProgramOptions::profile)
      .def_rw("mixed", &ProgramOptions::mixed)
      .def_rw("trajectories", &ProgramOptions::trajectories)
      .def_rw("histories", &ProgramOptions::histories)
      .def_rw("memory", &ProgramOptions::memory)
      .def_rw("exact", &ProgramOptions::exact)
      .def_prop_rw("split", unread, callback(&ProgramOptions::split))
      .def_prop_rw("due", unread, callback(&ProgramOptions::due))
      .def_prop_rw("keep", unread, callback(&ProgramOptions::keep))
      .def_prop_rw("restore", unread, callback(&ProgramOptions::restore))
      .def_prop_rw(
          "resume", unread, [](ProgramOptions& o, const CheckpointState& from) { o.resume = &from; },
          nb::for_setter(nb::keep_alive<1, 2>()))
      .def_prop_rw(
          "progress", unread,
          [](ProgramOptions& o, nb::object function) {
            o.progress = [held = std::make_shared<nb::object>(std::move(function))](const Progress& p) {
              const nb::gil_scoped_acquire gil;
              if (PyErr_CheckSignals() != 0) throw nb::python_error();
              if (!held->is_none()) (*held)(p.done, p.total, p.run, p.shots_done);
            };
          },
          nb::for_setter(nb::arg().none()), "Function `progress(done, total, run, shots_done)`, or None.");
}

}  // namespace

void bind_quantum_simulator(nb::module_& module) {
  bind_checkpoint_state(module);
  bind_options(module);
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
      .def_prop_ro("counts", array_of(&Outcomes::counts), nb::rv_policy::automatic,
                   "Number of shots with each of `values`.")
      .def_prop_ro("of_shot", array_of(&Outcomes::of_shot), nb::rv_policy::automatic,
                   "Index into `values` of each shot's outcome.")
      .def("__getstate__", [](const Outcomes& o) { return OutcomesParts(o.clbits, o.values, o.counts, o.of_shot); })
      .def("__setstate__", [](Outcomes& o, const OutcomesParts& parts) {
        new (&o) Outcomes{std::get<0>(parts), std::get<1>(parts), std::get<2>(parts), std::get<3>(parts)};
      });
  nb::class_<SimulationResult>(module, "SimulationResult", "The result of `simulate`; the same on every rank.")
      .def_ro("outcomes", &SimulationResult::outcomes)
      .def_prop_ro("expectations", array_of(&SimulationResult::expectations), nb::rv_policy::automatic)
      .def_ro("seconds", &SimulationResult::seconds)
      .def_ro("ranks", &SimulationResult::ranks)
      .def_ro("workers", &SimulationResult::workers)
      .def_ro("runs", &SimulationResult::runs)
      .def_ro("made", &SimulationResult::made)
      .def_ro("exchanges", &SimulationResult::exchanges)
      .def_ro("bytes_moved", &SimulationResult::bytes_moved)
      .def_ro("bytes_between_hosts", &SimulationResult::bytes_between_hosts)
      .def_prop_ro(
          "disk",
          [](const SimulationResult& r) {
            return nb::make_tuple(r.disk.bytes_read, r.disk.bytes_written, r.disk.seconds);
          },
          "Bytes read from the state's file and written to it, and the seconds of these transfers.")
      .def_ro("fidelity_estimate", &SimulationResult::fidelity_estimate)
      .def_prop_ro("passes", [](const SimulationResult& r) { return r.engine.passes; })
      .def_prop_ro("disk_passes", [](const SimulationResult& r) { return r.engine.disk_passes; })
      .def_ro("pass_seconds", &SimulationResult::pass_seconds)
      .def_prop_ro(
          "profile",
          [](const SimulationResult& r) {
            nb::list list;
            for (const auto& entry : r.profile) list.append(profile_dict(entry));
            return list;
          },
          nb::sig("def profile(self) -> list[dict[str, Any]]"))
      .def_ro("largest_state_qubits", &SimulationResult::largest_state_qubits)
      .def_ro("measures_early", &SimulationResult::measures_early)
      .def(
          "take_state",
          [](SimulationResult& r) { return onehop::quantum::product_of(std::move(r.factors), r.qubits, r.ones); },
          nb::call_guard<nb::gil_scoped_release>(),
          "Return the final state of all qubits, the first time; None on a rank that has none. Collective.");
  module.def(
      "outcomes_of",
      [](const QuantumIndices& values, int clbits, std::int64_t shots) {
        onehop::quantum::Shots all(clbits, shots);
        all.set_words(words(values));
        return all.outcomes();
      },
      "words"_a, "clbits"_a, "shots"_a, "Return the outcomes of shots from their classical bits, in words of 64.");
  module.def(
      "split_measurements",
      [](const Circuit& circuit) {
        onehop::quantum::SplitProgram split(circuit);
        Circuit body = onehop::quantum::without_fresh_resets(std::move(split.body.circuit));
        return nb::make_tuple(std::move(body), split.bits, std::move(split.last));
      },
      nb::sig("def split_measurements(circuit: Circuit) -> tuple[Circuit, int, list[tuple[int, int]]]"), "circuit"_a,
      "Return a circuit without the measurements at its end and without resets that draw nothing, the number of bits "
      "of an outcome, and these "
      "measurements: pairs of a bit and a qubit.");
  module.def(
      "draw_numbers",
      [](std::uint64_t seed, const QuantumIndices& shots, std::uint64_t event, bool at_end) {
        std::vector<double> numbers;
        for (const std::uint64_t shot : words(shots)) {
          numbers.push_back(onehop::quantum::draw_number(seed, shot, event, at_end));
        }
        return as_array(numbers);
      },
      "seed"_a, "shots"_a, "event"_a, "at_end"_a,
      "Return the number in [0, 1) that each shot draws: of an event inside a circuit or of a measurement at its end.");
  module.def("ranks_per_host", &onehop::quantum::ranks_per_host, "group"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Return the number of ranks on each host; 0 unless every host has the same number of ranks, a power of "
             "two, one after the other. Collective; the same on every rank.");
  module.def(
      "require_same_simulation",
      [](const Circuit& circuit, const Group& group, const ProgramOptions& options, const std::string& method) {
        using namespace onehop::quantum;
        check_same(group, {"circuit", circuit}, options, method.empty() ? Key{} : hash_of(method));
      },
      "circuit"_a, "group"_a, "options"_a, "method"_a, nb::call_guard<nb::gil_scoped_release>(),
      "Raise Mismatch unless all ranks simulate the same.");
  module.def(
      "simulate",
      [](const Circuit& circuit, const Group& group, const ProgramOptions& options) {
        return onehop::quantum::simulate(circuit, group, options);
      },
      "circuit"_a, "group"_a, "options"_a, nb::call_guard<nb::gil_scoped_release>(),
      "Run a circuit from |0...0>. Collective; see `onehop.quantum.simulate`.");
}
