#include "onehop/quantum/language.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "onehop/error.h"
#include "python/bindings/bindings.h"
#include "quantum/language/gates/gates.h"
#include "quantum/language/values/logic.h"

using onehop::quantum::Circuit;
namespace language = onehop::quantum::language;
using language::Bits;
using language::Logic;

namespace {

void refuse(const std::string& wrong) {
  if (!wrong.empty()) throw onehop::BadInput(wrong);
}

// A function of two numbers, the shorter of which gets zeros.
template <class Result>
auto padded(Result (Logic::*function)(const Bits&, const Bits&)) {
  return [function](Logic& logic, Bits a, Bits b) {
    const std::size_t size = std::max(a.size(), b.size());
    a.resize(size, language::zero_bit);
    b.resize(size, language::zero_bit);
    return (logic.*function)(a, b);
  };
}

void bind_logic(nb::module_& module) {
  nb::class_<Logic>(module, "BitLogic",
                    "Boolean functions of a circuit's classical bits, see `onehop.quantum.classical.BitLogic`.")
      .def(
          "__init__",
          [](Logic* self, Circuit& circuit) {
            new (self) Logic(circuit, std::numeric_limits<std::int64_t>::max(), circuit.clbits);
          },
          "circuit"_a, nb::keep_alive<1, 2>())
      .def("assign", &Logic::assign, "condition"_a,
           "Store the current truth of a condition in a new hidden bit; return the bit.")
      .def("copy", &Logic::copy, "target"_a, "source"_a, "Set a bit to another one or to a constant.")
      .def("all_of", &Logic::all_of, "wanted"_a, "negated"_a = false,
           "Compute whether every bit of the (bit, value) pairs has its value; if negated, whether one has not.")
      .def("any_of", &Logic::any_of, "bits"_a, "Compute whether at least one of the bits is 1.")
      .def("negation", &Logic::negation, "a"_a, "Compute not a.")
      .def("both", &Logic::both, "a"_a, "b"_a, "Compute a and b.")
      .def("either", &Logic::either, "a"_a, "b"_a, "Compute a or b.")
      .def("different", &Logic::different, "a"_a, "b"_a, "Compute the exclusive or of a and b.")
      .def("choice", &Logic::choice, "condition"_a, "yes"_a, "no"_a, "Compute yes where the condition holds, else no.")
      .def("equal", padded(&Logic::equal), "a"_a, "b"_a, "Compute whether two numbers are equal.")
      .def("less", padded(&Logic::less), "a"_a, "b"_a, "Compute whether a < b.")
      .def("difference", padded(&Logic::difference), "a"_a, "b"_a, "Compute a - b modulo 2^n of the longer number.")
      .def("product", padded(&Logic::product), "a"_a, "b"_a, "Compute a b modulo 2^n of the longer number.")
      .def("sum", padded(&Logic::sum), "a"_a, "b"_a, "Compute a + b modulo 2^n of the longer number.")
      .def("quotient", padded(&Logic::quotient), "a"_a, "b"_a, "Compute the quotient of numbers; ones if b is 0.");
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
  bind_logic(module);
}
