#include "onehop/quantum/language.h"

#include <cstdint>
#include <string>
#include <utility>

#include "onehop/error.h"
#include "python/bindings/bindings.h"
#include "quantum/language/gates/gates.h"

using onehop::quantum::Circuit;
namespace language = onehop::quantum::language;

namespace {

void refuse(const std::string& wrong) {
  if (!wrong.empty()) throw onehop::BadInput(wrong);
}

}  // namespace

void bind_quantum_language(nb::module_& module) {
  module.def(
      "read_qasm",
      [](Circuit& circuit, const std::string& text, std::string name, std::string folder, std::int64_t operations,
         double seconds, std::int64_t bytes) {
        const onehop::quantum::ReadOptions options{std::move(name), std::move(folder), operations, seconds, bytes};
        const nb::gil_scoped_release release;
        circuit = onehop::quantum::read_qasm(text, options);
      },
      "circuit"_a, "text"_a, nb::kw_only(), "name"_a, "folder"_a, "operations"_a, "seconds"_a, "memory"_a,
      "Replace a circuit by that of an OpenQASM program; see `onehop.quantum.parse_qasm`.");
  module.def(
      "inverted",
      [](Circuit circuit) {
        refuse(language::invert(circuit.operations));
        return circuit;
      },
      "circuit"_a, "Return a circuit of gates inverted; see `onehop.quantum.Circuit.inverse`.");
  module.def(
      "raised",
      [](Circuit circuit, double power) {
        refuse(language::raise(circuit.operations, power));
        return circuit;
      },
      "circuit"_a, "power"_a, "Return a circuit of gates raised to a power; see `onehop.quantum.Circuit.power`.");
  module.def(
      "controlled",
      [](Circuit circuit, const std::vector<int>& controls, std::uint64_t values) {
        language::add_controls(circuit.operations, controls, values);
        return circuit;
      },
      "circuit"_a, "controls"_a, "values"_a,
      "Return a circuit whose gates have further controls; see `onehop.quantum.Circuit.control`.");
}
