// Divides a program into parts that no operation joins, each on the qubits that it uses. A part has a state of its own;
// a qubit in no part is idle and stays |0>.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "onehop/quantum/simulator.h"
#include "quantum/simulator/shots.h"

namespace onehop::quantum {

struct StoredPart {
  SplitProgram split;       // on the qubits of the part
  std::vector<int> qubits;  // the qubit of the program that each of them is at the end
  // Qubits that have left the state after a measurement, and the classical bits that have their values (reuse.h).
  std::vector<std::pair<int, int>> left = {};
  std::uint64_t first_event = 0;  // of the outcomes that are drawn inside
  bool early = false;             // whether it measures qubits early that the program measures at the end
};

struct StorageOptions {
  // Whether gates that nothing joins may be in several parts, and qubits may leave the state; swaps then rename qubits.
  // Otherwise there is one part of all qubits that are not idle.
  bool divide = true;
  std::span<const PauliSum> observables = {};  // their qubits must be in the state at the end
  // The number of qubits of the largest state that the ranks can hold, however much other programs take. It is asked
  // for only where it may matter.
  std::function<int()> largest = {};
};

// The parts of a program, at least one. Everything that draws random numbers inside is in one part, so that it draws
// them in the order of the program. In a part that is too large, qubits leave the state early.
[[nodiscard]] std::vector<StoredPart> stored_parts(SplitProgram whole, const StorageOptions& options);
// All of a program as one part.
[[nodiscard]] StoredPart whole_part(SplitProgram whole);

// The observables of a program by parts. An expectation value is the sum over its strings of the products of the values
// of their parts.
class ObservableParts {
 public:
  // `qubits`: of the program.
  ObservableParts(std::span<const PauliSum> sums, const std::vector<StoredPart>& parts, int qubits);
  // What to evaluate on the state of a part.
  [[nodiscard]] const std::vector<PauliSum>& of(std::size_t part) const { return of_[part]; }
  // The values of the sums from the values of each part.
  [[nodiscard]] std::vector<Complex> join(std::vector<std::vector<Complex>> values) const;

 private:
  struct Product {
    std::size_t sum = 0;
    Complex coefficient = 1;
    std::vector<std::pair<std::size_t, std::size_t>> factors = {};  // part, and index into its sums
  };
  std::vector<std::vector<PauliSum>> of_;
  std::vector<Product> products_;
  std::size_t sums_;
};

}  // namespace onehop::quantum
