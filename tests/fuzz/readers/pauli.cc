// Observables as text: sums of Pauli strings.
#include <cmath>
#include <string>

#include "onehop/quantum/observable.h"
#include "tests/fuzz/readers/target.h"

namespace onehop::fuzz {

// A term takes 40 bytes, and 8 for each letter; the shortest, "+1", has 2.
const std::size_t bytes_per_byte = 24;
const std::size_t allowance = small_allowance;

std::vector<std::string> large_inputs() {
  return {repeated("", "+1", "", ""), repeated("", "+Z0", "", ""), repeated("", "+X0Y1Z2", "", ""),
          repeated("", "+0.25*X0Y1Z2X10", "", ""), repeated("X0", " ", "", "Z1")};
}

void read_input(std::string_view input) {
  const std::string tried(input);
  const quantum::PauliSum sum = measured([&] { return quantum::PauliSum::parse(tried); });
  for (const quantum::PauliTerm& term : sum.terms) {
    require(std::isfinite(term.coefficient.real()), "weights are finite");
    for (const auto& [qubit, letter] : term.paulis) {
      require(qubit >= 0 && qubit < 62, "qubits are 0 to 61");
      require(letter == 'X' || letter == 'Y' || letter == 'Z', "letters are X, Y and Z");
    }
  }
}

}  // namespace onehop::fuzz
