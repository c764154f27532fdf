#include "onehop/quantum/state.h"

#include <nanobind/stl/array.h>

#include "onehop/quantum/simulator.h"
#include "python/bindings/quantum_arrays.h"
#include "quantum/simulator/circuit_cache.h"
#include "quantum/state/amplitude_file.h"

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
             std::int64_t staging, std::string device) {
            const Precision which = precision_from(precision);
            const nb::gil_scoped_release released;
            new (self) State(group, qubits, which, state_options(threads, staging, std::move(device)));
          },
          "group"_a, "qubits"_a, "precision"_a, "threads"_a, "staging"_a, "device"_a)
      .def_prop_ro("group", &State::group, nb::rv_policy::copy)
      .def_prop_ro("qubits", &State::qubits)
      .def_prop_ro("local_bits", &State::local_bits)
      .def_prop_ro("ranks", [](const State& s) { return s.group().size(); })
      .def_prop_ro("rank", [](const State& s) { return s.group().rank(); })
      .def_prop_ro("precision", [](const State& s) { return std::string(to_string(s.precision())); })
      .def_prop_ro("device", &State::device)
      .def_prop_ro("bits", tuple_of(&State::bits))
      .def_prop_ro("flips", &State::flips)
      .def_prop_ro("exchanges", [](const State& s) { return s.counters().exchanges; })
      .def_prop_ro("bytes_sent", [](const State& s) { return s.counters().bytes_sent; })
      .def_prop_ro("bytes_between_hosts", [](const State& s) { return s.counters().bytes_between_hosts; })
      .def_prop_rw("ranks_per_host", &State::ranks_per_host, &State::set_ranks_per_host)
      .def("local",
           [](nb::handle_t<State> self) -> nb::object {
             const auto& state = nb::cast<const State&>(self);
             if (state.precision() != Precision::double_precision) {
               const auto span = state.local<float>();
               return nb::cast(QuantumArray<std::complex<float>>(span.data(), {span.size()}, self),
                               nb::rv_policy::reference);
             }
             const auto span = state.local<double>();
             return nb::cast(QuantumArray<Complex>(span.data(), {span.size()}, self), nb::rv_policy::reference);
           })
      .def(
          "kept",
          [](const State& s, std::uint64_t first, std::size_t count) {
            std::vector<std::byte> kept;
            {
              const nb::gil_scoped_release released;
              kept = s.kept(first, count);
            }
            return nb::bytes(kept.data(), kept.size());
          },
          "first"_a, "count"_a)
      .def(
          "set_kept",
          [](State& s, std::uint64_t first, std::size_t count, const nb::bytes& kept) {
            s.set_kept(first, count, std::as_bytes(std::span(kept.c_str(), kept.size())));
          },
          "first"_a, "count"_a, "kept"_a)
      .def(
          "encoding", [](State& s) { return s.encoding(); }, release())
      .def("set_encoding", &State::set_encoding, "scale"_a, "lost"_a)
      .def_prop_ro("file_number", [](const State& s) { return s.file() == nullptr ? -1 : s.file()->number(); })
      .def(
          "adopt_file", [](State& s) { s.file()->adopt(); }, release())
      .def(
          "complete_file", [](State& s) { s.file()->complete(); }, release())
      .def(
          "turn_file", [](State& s) { s.file()->turn(); }, release())
      .def("set_layout", &State::set_layout, "bits"_a, "flips"_a)
      .def("set_basis_state", &State::set_basis_state, "index"_a, release())
      .def(
          "set_amplitudes",
          [](State& s, const Amplitudes& amplitudes, bool normalize, bool check) {
            const std::span<const Complex> values(amplitudes.data(), amplitudes.size());
            const nb::gil_scoped_release released;
            s.set_amplitudes(values, !check ? Norm::any : normalize ? Norm::normalize : Norm::check);
          },
          "amplitudes"_a, "normalize"_a = false, "check"_a = true)
      .def(
          "run",
          [](State& s, const Circuit& circuit, std::uint64_t seed) {
            const std::vector<bool> bits = run(s, circuit, seed);
            return std::vector<int>(bits.begin(), bits.end());
          },
          "circuit"_a, "seed"_a, release())
      .def(
          "apply",
          [](State& s, const Circuit& circuit, double search_seconds) {
            check_applicable(circuit);
            auto options = onehop::quantum::placement_options(s);
            options.search_seconds = search_seconds;
            apply_placed(s, *find_or_place(circuit, s.group().size(), options));
          },
          "circuit"_a, "search_seconds"_a, release())
      .def_prop_ro("fidelity_estimate", &State::fidelity_estimate, release())
      .def("restore_order", &State::restore_order, release())
      .def("norm_squared", &State::norm_squared, release())
      .def(
          "amplitudes",
          [](const State& s, const QuantumIndices& indices) {
            const std::span<const std::uint64_t> list(indices.data(), indices.size());
            return computed([&] { return s.amplitudes(list); });
          },
          "indices"_a)
      .def("gather", [](const State& s) { return computed([&] { return s.gather(); }); })
      .def(
          "probabilities",
          [](const State& s, const std::vector<int>& qubits) {
            return computed([&] { return s.probabilities(qubits); });
          },
          "qubits"_a)
      .def("inner_product", &State::inner_product, "other"_a, release())
      .def(
          "reduced_density_matrix",
          [](State& s, const std::vector<int>& qubits) {
            return computed([&] { return s.reduced_density_matrix(qubits); });
          },
          "qubits"_a)
      .def(
          "expectations", [](State& s, const std::vector<PauliSum>& sums) { return expectations(s, sums); }, "sums"_a,
          release())
      .def(
          "variances", [](const State& s, const std::vector<PauliSum>& sums) { return variances(s, sums); }, "sums"_a,
          release())
      .def(
          "sample",
          [](const State& s, const std::vector<int>& qubits, std::int64_t shots, std::uint64_t seed) {
            return computed([&] { return sample(s, qubits, shots, seed); });
          },
          "qubits"_a, "shots"_a, "seed"_a);
}

}  // namespace

void bind_quantum_state(nb::module_& module) {
  bind_observable(module);
  bind_state(module);
}
