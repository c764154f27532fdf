// Observables as text: sums of Pauli strings.
#include <cmath>
#include <string>

#include "onehop/quantum/observable.h"
#include "tests/fuzz/readers/target.h"

namespace onehop::fuzz {

const std::size_t bytes_per_byte = 64;

void read_input(std::string_view input) {
  const quantum::PauliSum sum = quantum::PauliSum::parse(std::string(input));
  for (const quantum::PauliTerm& term : sum.terms) {
    require(std::isfinite(term.coefficient.real()), "weights are finite");
    for (const auto& [qubit, letter] : term.paulis) {
      require(qubit >= 0 && qubit < 62, "qubits are 0 to 61");
      require(letter == 'X' || letter == 'Y' || letter == 'Z', "letters are X, Y and Z");
    }
  }
}

}  // namespace onehop::fuzz
