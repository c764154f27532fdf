// Validates circuits. The named gates are in gates.cc.
#include "onehop/quantum/circuit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

constexpr double unitarity_tolerance = 1e-9;

[[noreturn]] void bad(std::size_t index, const Operation& operation, const std::string& message) {
  throw BadInput("operation " + std::to_string(index) + " (" + operation.name + "): " + message);
}

void check_bits(std::size_t index, const Operation& operation, const std::vector<int>& bits, int limit,
                const char* noun) {
  std::set<int> seen;
  for (const int bit : bits) {
    if (bit < 0 || bit >= limit) {
      bad(index, operation,
          std::string(noun) + " " + std::to_string(bit) + " does not exist; the circuit has " + std::to_string(limit));
    }
    if (!seen.insert(bit).second)
      bad(index, operation, std::string(noun) + " " + std::to_string(bit) + " is named twice");
  }
}

void check_unitary(std::size_t index, const Operation& operation) {
  const std::size_t size = std::size_t{1} << operation.targets.size();
  const auto& m = operation.values;
  const auto is_finite = [](const Complex& value) {
    return std::isfinite(value.real()) && std::isfinite(value.imag());
  };
  if (!std::ranges::all_of(m, is_finite)) {
    bad(index, operation, "expected finite numbers in the matrix, found an infinity or NaN");
  }
  double worst = 0;
  if (operation.kind == OperationKind::diagonal) {
    for (const Complex& value : m) worst = std::max(worst, std::abs(std::norm(value) - 1));
  } else {
    for (std::size_t r = 0; r < size; ++r) {
      for (std::size_t c = 0; c <= r; ++c) {
        Complex sum = 0;
        for (std::size_t k = 0; k < size; ++k) sum += m[r * size + k] * std::conj(m[c * size + k]);
        worst = std::max(worst, std::abs(sum - (r == c ? 1.0 : 0.0)));
      }
    }
  }
  if (!(worst <= unitarity_tolerance)) {
    bad(index, operation,
        "the matrix is not unitary: U U^dagger differs from 1 by " + base::number_text(worst) + ", more than " +
            base::number_text(unitarity_tolerance) +
            "; pass a unitary matrix, computed in double precision, or use a channel");
  }
}

void check_values(std::size_t index, const Operation& operation, bool unitary) {
  const std::size_t k = operation.targets.size();
  const std::size_t expected =
      operation.kind == OperationKind::matrix ? std::size_t{1} << (2 * k) : std::size_t{1} << k;
  if (operation.values.size() != expected) {
    bad(index, operation,
        "expected " + base::counted(expected, "value") + " for " + base::counted(k, "target") + ", found " +
            base::counted(operation.values.size(), "number"));
  }
  if (unitary) check_unitary(index, operation);
}

void check_names(std::vector<std::string> parameters) {
  std::sort(parameters.begin(), parameters.end());
  const auto repeated = std::adjacent_find(parameters.begin(), parameters.end());
  if (repeated != parameters.end()) {
    throw BadInput("expected parameters of different names, found '" + *repeated + "' twice");
  }
}

void check_angles(std::size_t index, const Operation& operation, std::size_t parameters) {
  for (const Expression& angle : operation.angles) {
    bool finite = std::isfinite(angle.constant);
    for (const auto& [parameter, factor] : angle.terms) {
      if (parameter < 0 || static_cast<std::size_t>(parameter) >= parameters) {
        bad(index, operation,
            "parameter " + std::to_string(parameter) + " does not exist; the circuit has " +
                std::to_string(parameters));
      }
      finite = finite && std::isfinite(factor);
    }
    if (!finite) bad(index, operation, "expected finite factors of parameters, found an infinity or NaN");
  }
  if (!operation.angles.empty() && !operation.is_gate()) bad(index, operation, "only gates can have parameters");
}

void check_value(std::size_t index, const Operation& operation, const char* noun, std::uint64_t value,
                 std::size_t bits) {
  if (bits >= 64 || value >> bits == 0) return;
  bad(index, operation,
      std::string("expected ") + noun + " below 2^" + std::to_string(bits) + ", found " + std::to_string(value));
}

void check_operation(std::size_t index, const Operation& operation, int qubits, int clbits, bool unitary) {
  std::vector<int> all = operation.targets;
  all.insert(all.end(), operation.controls.begin(), operation.controls.end());
  check_bits(index, operation, all, qubits, "qubit");
  check_bits(index, operation, operation.clbits, clbits, "classical bit");
  check_bits(index, operation, operation.condition.clbits, clbits, "classical bit");
  if (!operation.controls.empty() && !operation.is_gate()) bad(index, operation, "only gates can have controls");
  if (operation.controls.size() > 63) bad(index, operation, "expected at most 63 controls, found more");
  check_value(index, operation, "values of its controls", operation.control_values, operation.controls.size());
  check_value(index, operation, "value of its condition", operation.condition.value, operation.condition.clbits.size());
  switch (operation.kind) {
    case OperationKind::matrix:
      if (operation.targets.empty()) bad(index, operation, "expected a matrix on 1 target or more, found none");
      if (operation.targets.size() > 12) bad(index, operation, "expected a matrix on at most 12 targets, found more");
      check_values(index, operation, unitary);
      break;
    case OperationKind::diagonal:
      if (operation.targets.size() > 24) bad(index, operation, "expected a diagonal on at most 24 targets, found more");
      check_values(index, operation, unitary);
      break;
    case OperationKind::swap:
      if (operation.targets.size() != 2) bad(index, operation, "expected a swap of two targets");
      break;
    case OperationKind::pauli_rotation:
      if (operation.paulis.size() != operation.targets.size() ||
          operation.paulis.find_first_not_of("XYZ") != std::string::npos) {
        bad(index, operation,
            "expected one of X, Y, Z for each of " + base::counted(operation.targets.size(), "target") + ", found '" +
                operation.paulis + "'");
      }
      break;
    case OperationKind::measure:
      if (operation.targets.size() != operation.clbits.size()) {
        bad(index, operation,
            "expected as many classical bits as the " + base::counted(operation.targets.size(), "qubit") + ", found " +
                std::to_string(operation.clbits.size()));
      }
      break;
    case OperationKind::assign:
      if (operation.clbits.size() != 1) bad(index, operation, "expected one classical bit to write");
      break;
    default:
      if (operation.is_of_programs()) bad(index, operation, "expected a program, found a circuit");
      break;
  }
  if (!std::isfinite(operation.angle)) bad(index, operation, "expected a finite angle, found an infinity or NaN");
}

void check_jumps(const std::vector<Operation>& operations) {
  std::set<int> marks;
  for (const Operation& operation : operations) {
    if (operation.kind != OperationKind::mark) continue;
    if (!marks.insert(operation.index).second) throw BadInput("expected one mark for each jump, found two");
  }
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].kind != OperationKind::jump || marks.contains(operations[i].index)) continue;
    bad(i, operations[i], "expected a jump to a mark, found none");
  }
}

}  // namespace

bool Circuit::has_jumps() const {
  return std::ranges::any_of(operations, [](const Operation& one) { return one.kind == OperationKind::jump; });
}

bool Condition::holds(const std::vector<bool>& all) const {
  if (clbits.empty()) return true;
  bool equal = true;
  for (std::size_t i = 0; i < clbits.size(); ++i) {
    const bool wanted = i < 64 && (value >> i & 1U) != 0;
    equal = equal && all[static_cast<std::size_t>(clbits[i])] == wanted;
  }
  return equal != negated;
}

void Circuit::validate(bool unitary) const {
  if (qubits < 1 || qubits > most_qubits) {
    throw BadInput("expected a circuit of 1 to " + std::to_string(most_qubits) + " qubits, found " +
                   std::to_string(qubits));
  }
  if (clbits < 0 || hidden_clbits < 0) {
    throw BadInput("expected 0 classical bits or more, found " + std::to_string(std::min(clbits, hidden_clbits)));
  }
  check_names(parameters);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    check_operation(i, operations[i], qubits, clbits + hidden_clbits, unitary);
    check_angles(i, operations[i], parameters.size());
  }
  check_jumps(operations);
}

}  // namespace onehop::quantum
