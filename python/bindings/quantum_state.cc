#include "onehop/quantum/state.h"

#include "onehop/quantum/simulator.h"
#include "python/bindings/quantum_arrays.h"
#include "quantum/simulator/circuit_cache.h"

using onehop::Group;
using onehop::quantum::Circuit;
using onehop::quantum::Complex;
using onehop::quantum::Norm;
using onehop::quantum::PauliSum;
using onehop::quantum::PauliTerm;
using onehop::quantum::Precision;
using onehop::quantum::State;

namespace {

using release = nb::call_guard<nb::gil_scoped_release>;
using Amplitudes = nb::ndarray<const Complex, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

void bind_observable(nb::module_& module) {
  nb::class_<PauliSum>(module, "PauliSum",
                       "A weighted sum of Pauli strings: coefficient, and qubit and letter (X, Y or Z) of each factor.")
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
          "terms"_a);
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
                    "A state vector that is split over the ranks of a group; see `onehop.quantum.State`.")
      .def(
          "__init__",
          [](State* self, const Group& group, int qubits, const std::string& precision, int threads,
             std::int64_t staging) {
            const Precision which = precision_from(precision);
            const nb::gil_scoped_release released;
            new (self) State(group, qubits, which, state_options(threads, staging));
          },
          "group"_a, "qubits"_a, "precision"_a, "threads"_a, "staging"_a)
      .def_prop_ro("group", &State::group, nb::rv_policy::copy, "Ranks that hold the state.")
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
              return nb::cast(QuantumArray<std::complex<float>>(span.data(), {span.size()}, self),
                              nb::rv_policy::reference);
            }
            const auto span = state.local<double>();
            return nb::cast(QuantumArray<Complex>(span.data(), {span.size()}, self), nb::rv_policy::reference);
          },
          "Return a view of this rank's amplitudes, in the order that `bits` and `flips` define. Not collective.")
      .def("set_layout", &State::set_layout, "bits"_a, "flips"_a,
           "Declare other `bits` and `flips` without moving any amplitude. Not collective.")
      .def("set_basis_state", &State::set_basis_state, "index"_a, release(),
           "Set the state to the basis state with this index.")
      .def(
          "set_amplitudes",
          [](State& s, const Amplitudes& amplitudes, bool normalize, bool check) {
            const std::span<const Complex> values(amplitudes.data(), amplitudes.size());
            const nb::gil_scoped_release released;
            s.set_amplitudes(values, !check ? Norm::any : normalize ? Norm::normalize : Norm::check);
          },
          "amplitudes"_a, "normalize"_a = false, "check"_a = true,
          "Set all 2^qubits amplitudes by index. Every rank passes all of them.\n\n"
          "normalize : bool\n    Divide them by their norm, which must be 1 otherwise.\n"
          "check : bool\n    False: take them as they are.")
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
          [](const State& s, const QuantumIndices& indices) {
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

}  // namespace

void bind_quantum_state(nb::module_& module) {
  bind_observable(module);
  bind_state(module);
}
