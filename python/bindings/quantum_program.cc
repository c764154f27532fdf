#include "onehop/quantum/program.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "python/bindings/quantum_arrays.h"
#include "quantum/circuit/random.h"
#include "quantum/simulator/fingerprint.h"

using onehop::Group;
using onehop::quantum::Channel;
using onehop::quantum::Circuit;
using onehop::quantum::Complex;
using onehop::quantum::Misread;
using onehop::quantum::PauliSum;
using onehop::quantum::Program;
using onehop::quantum::ProgramOptions;
using onehop::quantum::Run;
using onehop::quantum::Save;
using onehop::quantum::State;

namespace {

using SaveTuple = std::tuple<std::string, std::vector<std::uint64_t>, std::vector<PauliSum>>;

constexpr const char* save_kinds[] = {"state",          "amplitudes",   "weights",  "probabilities",
                                      "density_matrix", "expectations", "variances"};

Save save_from(const SaveTuple& given) {
  const auto& [name, indices, observables] = given;
  for (std::size_t kind = 0; kind < std::size(save_kinds); ++kind) {
    if (name == save_kinds[kind]) return {static_cast<Save::Kind>(kind), indices, observables};
  }
  throw onehop::BadInput("there is no kind of data called '" + name + "'");
}

void bind_program(nb::module_& module) {
  nb::class_<Channel>(module, "Channel", "A channel of a program; see `onehop.quantum.Channel`.")
      .def(nb::init<std::string, std::vector<std::vector<Complex>>, std::vector<double>>(), "name"_a, "operators"_a,
           "probabilities"_a);
  nb::class_<Program>(module, "Program",
                      "A circuit with operations that only programs have. They name `channels` and `saves` (kind, "
                      "indices of amplitudes, observables) by their index; `readout` has the errors of each qubit.")
      .def(
          "__init__",
          [](Program* self, const Circuit& circuit, std::vector<Channel> channels, const std::vector<SaveTuple>& saves,
             std::vector<Misread> readout) {
            new (self) Program{circuit, std::move(channels), {}, std::move(readout)};
            for (const SaveTuple& save : saves) self->saves.push_back(save_from(save));
          },
          "circuit"_a, "channels"_a = std::vector<Channel>(), "saves"_a = std::vector<SaveTuple>(),
          "readout"_a = std::vector<Misread>())
      .def("validate", &Program::validate, "mixed"_a, "Check all operations. Raises BadInput.")
      .def_prop_ro("has_gates_only", &Program::has_gates_only,
                   "Whether it has only gates and channels without conditions, and measurements at its end.")
      .def("without_idle", &onehop::quantum::without_idle,
           "Return the program without final measurements and without qubits that no operation uses.")
      .def("on_rows_and_columns", &onehop::quantum::on_rows_and_columns,
           "Return gates and channels as a circuit on the vector of a density matrix.");
  nb::class_<Run>(module, "Run", "A run of a program: one record of its random choices.")
      .def_ro("count", &Run::count)
      .def_ro("weight", &Run::weight)
      .def_prop_ro("shots", array_of(&Run::shots), nb::rv_policy::automatic)
      .def_ro("clbits", &Run::clbits)
      .def_prop_ro("values", array_of(&Run::values), nb::rv_policy::automatic)
      .def_prop_ro(
          "saved",
          [](const Run& run) {
            nb::list list;
            for (const auto& saved : run.saved) {
              list.append(nb::make_tuple(saved.save, saved.clbits, as_array(saved.values)));
            }
            return list;
          },
          nb::sig("def saved(self) -> list[tuple[int, list[bool], NDArray[numpy.complex128]]]"));
}

}  // namespace

void bind_quantum_program(nb::module_& module) {
  bind_program(module);
  module.def("uniform", &onehop::quantum::detail::uniform, "seed"_a, "shot"_a, "event"_a,
             "Return the random number in [0, 1) of an event.");
  module.def(
      "mixed_probabilities",
      [](const State& state, const std::vector<int>& qubits) {
        return as_array(onehop::quantum::mixed_probabilities(state, qubits));
      },
      "state"_a, "qubits"_a, nb::rv_policy::automatic, "Return probabilities in a density matrix. Collective.");
  module.def(
      "mixed_expectations",
      [](const State& state, const std::vector<PauliSum>& sums) {
        return as_array(onehop::quantum::mixed_expectations(state, sums));
      },
      "state"_a, "sums"_a, nb::rv_policy::automatic, "Return expectation values in a density matrix. Collective.");
  module.def(
      "mixed_density_matrix",
      [](const State& state, const std::vector<int>& qubits) {
        return as_array(onehop::quantum::mixed_density_matrix(state, qubits));
      },
      "state"_a, "qubits"_a, nb::rv_policy::automatic,
      "Return the reduced density matrix of qubits of a density matrix, row by row. Collective.");
  module.def("mixed_collapse", &onehop::quantum::mixed_collapse, "state"_a, "qubit"_a, "value"_a, "probability"_a,
             "Project a density matrix onto a value of a qubit.");
  module.def(
      "mixed_sample",
      [](const State& state, const std::vector<int>& qubits, std::int64_t shots, std::uint64_t seed) {
        return as_array(onehop::quantum::mixed_sample(state, qubits, shots, seed));
      },
      "state"_a, "qubits"_a, "shots"_a, "seed"_a, nb::rv_policy::automatic,
      "Sample the outcomes of a measurement of qubits of a density matrix. Collective.");
  module.def(
      "require_same_program",
      [](const Group& group, const Program& program, std::uint64_t seed) {
        onehop::quantum::check_same(group, program.circuit, program.channels, seed);
      },
      "group"_a, "program"_a, "seed"_a, nb::call_guard<nb::gil_scoped_release>(),
      "Raise Mismatch unless all ranks run the same program.");
  module.def(
      "run_program_once",
      [](State& state, const Program& program, std::uint64_t seed) {
        return onehop::quantum::run_program(state, program, true, seed);
      },
      "state"_a, "program"_a, "seed"_a, nb::call_guard<nb::gil_scoped_release>(),
      "Run a program once on a density matrix; return the classical bits. Collective.");
  module.def(
      "run_program",
      [](const Program& program, const Group& group, const ProgramOptions& options) {
        return onehop::quantum::run_program(program, group, options);
      },
      "program"_a, "group"_a, "options"_a, nb::call_guard<nb::gil_scoped_release>(),
      "Run a program from |0...0>. Collective.");
}
