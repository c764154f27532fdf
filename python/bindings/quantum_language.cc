#include "onehop/quantum/language.h"

#include <cstdint>
#include <string>
#include <utility>

#include "python/bindings/bindings.h"

using onehop::quantum::Circuit;

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
}
