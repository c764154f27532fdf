// Controls, inverses and powers of gates.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "onehop/error.h"
#include "quantum/language/gates/gates.h"
#include "src/base/text.h"

namespace onehop::quantum::language {
namespace {

constexpr double pi = std::numbers::pi;
constexpr std::size_t largest_matrix = 10;      // qubits
constexpr double largest_power = 1e15;          // more digits than a double has
constexpr std::size_t most_repetitions = 4096;  // of operations

// Rewrites gates with parameters as rotations and phases.
std::vector<Operation> rotations(std::vector<Operation> gate) {
  const auto varies = [](const Operation& one) { return !one.angles.empty(); };
  if (std::ranges::none_of(gate, varies)) return gate;
  Circuit circuit;
  circuit.operations = std::move(gate);
  return with_rotations(circuit).operations;
}

// The name of the inverse of a named gate without angles; the other names are kept.
std::string inverse_name(const std::string& name) {
  static constexpr std::array<std::string_view, 10> pairs{"s",     "t",       "sx",  "cs",   "csx",
                                                          "iswap", "c3sqrtx", "dcx", "rc3x", "rcccx"};
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    std::string other = std::string(pairs[k]) + (k < 4 ? "dg" : "_dg");
    if (name == pairs[k]) return other;
    if (name == other) return std::string(pairs[k]);
  }
  return name;
}

// The name of a power of a gate: a gate with angles keeps its name.
std::string power_name(const std::string& name, double power) {
  const auto fixed = [&](const GateName& one) { return one.name == name && one.parameters == 0; };
  return std::ranges::any_of(gate_names(), fixed) ? name + "^" + base::number_text(power) : name;
}

Operation inverse(Operation operation) {
  operation.name = inverse_name(operation.name);
  operation.angle = -operation.angle;
  for (onehop::quantum::Expression& angle : operation.angles) {
    angle.constant = -angle.constant;
    for (auto& term : angle.terms) term.second = -term.second;
  }
  for (Complex& value : operation.values) value = std::conj(value);
  if (operation.kind != OperationKind::matrix) return operation;
  const std::size_t size = std::size_t{1} << operation.targets.size();
  for (std::size_t row = 0; row < size; ++row) {
    for (std::size_t column = 0; column < row; ++column) {
      std::swap(operation.values[row * size + column], operation.values[column * size + row]);
    }
  }
  return operation;
}

double phase_of(Complex value) {
  const double phase = std::arg(value);
  return phase < -pi + 1e-9 ? pi : phase;
}

std::vector<Complex> product(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(a.size()))));
  std::vector<Complex> found(a.size(), 0);
  for (std::size_t row = 0; row < size; ++row) {
    for (std::size_t k = 0; k < size; ++k) {
      const Complex factor = a[row * size + k];
      if (factor == 0.0) continue;
      for (std::size_t column = 0; column < size; ++column) found[row * size + column] += factor * b[k * size + column];
    }
  }
  return found;
}

// A power of one operation, or false if it takes its matrix.
bool raise_one(Operation& operation, double power) {
  const bool whole = std::trunc(power) == power;
  switch (operation.kind) {
    case OperationKind::global_phase:
      operation.angle = power * (whole ? operation.angle : phase_of(std::polar(1.0, operation.angle)));
      return true;
    case OperationKind::pauli_rotation:
      if (!whole && std::abs(operation.angle) >= 2 * pi) return false;
      operation.angle *= power;
      return true;
    case OperationKind::diagonal:
      operation.name = power_name(operation.name, power);
      for (Complex& value : operation.values) value = std::polar(1.0, power * phase_of(value));
      return true;
    case OperationKind::matrix:
      operation.name = power_name(operation.name, power);
      operation.values = power_of(operation.values, power);
      return true;
    default:
      return false;
  }
}

}  // namespace

void add_controls(std::vector<Operation>& gate, const std::vector<int>& controls, std::uint64_t values) {
  std::erase_if(gate, [](const Operation& one) { return !one.is_gate(); });
  for (Operation& one : gate) {
    one.control_values = values | one.control_values << controls.size();
    one.controls.insert(one.controls.begin(), controls.begin(), controls.end());
  }
}

std::string invert(std::vector<Operation>& gate) {
  try {
    gate = rotations(std::move(gate));
  } catch (const BadInput&) {
    return "expected a gate with numbers as angles to invert, found one that depends on inputs or measurements";
  }
  std::ranges::reverse(gate);
  for (Operation& one : gate) one = inverse(std::move(one));
  return {};
}

std::string raise(std::vector<Operation>& gate, double power) {
  if (!std::isfinite(power)) return "expected a finite power, found " + std::to_string(power);
  if (std::abs(power) > largest_power) {
    return "expected a power between -1e15 and 1e15, found another one; take a smaller exponent";
  }
  std::erase_if(gate, [](const Operation& one) { return !one.is_gate(); });
  if (power == 1 || gate.empty()) return {};
  if (power == -1) return invert(gate);
  if (power == 0) {
    gate.clear();
    return {};
  }
  const bool varies = std::ranges::any_of(gate, [](const Operation& one) { return !one.angles.empty(); });
  if (!varies && gate.size() == 1 && raise_one(gate[0], power)) return {};
  const bool whole = std::trunc(power) == power;
  std::vector<int> qubits;
  for (const Operation& one : gate) {
    qubits.insert(qubits.end(), one.targets.begin(), one.targets.end());
    qubits.insert(qubits.end(), one.controls.begin(), one.controls.end());
  }
  std::ranges::sort(qubits);
  qubits.erase(std::unique(qubits.begin(), qubits.end()), qubits.end());
  const bool repeats = whole && std::abs(power) * static_cast<double>(gate.size()) <= most_repetitions;
  const bool small = qubits.size() <= 2 && !varies && !qubits.empty();
  if (repeats && !small) {
    if (power < 0) {
      if (std::string wrong = invert(gate); !wrong.empty()) return wrong;
    }
    const std::vector<Operation> once = gate;
    for (int k = 1; k < static_cast<int>(std::abs(power)); ++k) gate.insert(gate.end(), once.begin(), once.end());
    return {};
  }
  if (varies) return "expected a whole power of a gate that depends on inputs or measurements, found another one";
  if (qubits.size() > largest_matrix) {
    return "expected a gate on at most 10 qubits to raise to this power, found one on " + std::to_string(qubits.size());
  }
  if (qubits.empty()) {
    for (Operation& one : gate) (void)raise_one(one, power);
    return {};
  }
  Operation made;
  made.kind = OperationKind::matrix;
  made.name = gate.size() == 1 ? power_name(gate.front().name, power) : "power";
  made.values = power_of(matrix_of(gate, qubits), power);
  made.targets = std::move(qubits);
  gate.clear();
  gate.push_back(std::move(made));
  return {};
}

std::vector<Complex> matrix_of(const std::vector<Operation>& gate, const std::vector<int>& qubits) {
  const std::size_t size = std::size_t{1} << qubits.size();
  std::vector<Complex> found(size * size, 0);
  for (std::size_t k = 0; k < size; ++k) found[k * size + k] = 1;
  const auto mask = [&](int qubit) { return std::size_t{1} << (std::ranges::find(qubits, qubit) - qubits.begin()); };
  for (const Operation& one : gate) {
    if (!one.is_gate()) continue;
    const std::vector<Complex> matrix = onehop::quantum::matrix_of(one);
    const std::size_t small = std::size_t{1} << one.targets.size();
    std::size_t fixed = 0;
    std::size_t wanted = 0;
    for (std::size_t c = 0; c < one.controls.size(); ++c) {
      fixed |= mask(one.controls[c]);
      if ((one.control_values >> c & 1U) != 0) wanted |= mask(one.controls[c]);
    }
    std::vector<std::size_t> places(small, 0);
    std::size_t moved = 0;
    for (std::size_t t = 0; t < one.targets.size(); ++t) {
      moved |= mask(one.targets[t]);
      for (std::size_t k = 0; k < small; ++k) places[k] |= (k >> t & 1U) != 0 ? mask(one.targets[t]) : 0;
    }
    std::vector<Complex> rows(small * size);
    for (std::size_t row = 0; row < size; ++row) {
      if ((row & moved) != 0 || (row & fixed) != wanted) continue;
      std::ranges::fill(rows, 0);
      for (std::size_t a = 0; a < small; ++a) {
        for (std::size_t b = 0; b < small; ++b) {
          const Complex factor = matrix[a * small + b];
          if (factor == 0.0) continue;
          const Complex* const from = &found[(row | places[b]) * size];
          for (std::size_t c = 0; c < size; ++c) rows[a * size + c] += factor * from[c];
        }
      }
      for (std::size_t a = 0; a < small; ++a) {
        std::copy_n(&rows[a * size], size, &found[(row | places[a]) * size]);
      }
    }
  }
  return found;
}

std::vector<Complex> power_of(const std::vector<Complex>& matrix, double power) {
  const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(matrix.size()))));
  if (std::trunc(power) == power && std::abs(power) <= 1024) {
    std::vector<Complex> factor = matrix;
    std::vector<Complex> found(matrix.size(), 0);
    for (std::size_t k = 0; k < size; ++k) found[k * size + k] = 1;
    for (auto left = static_cast<std::int64_t>(std::abs(power)); left > 0; left >>= 1) {
      if ((left & 1) != 0) found = product(found, factor);
      if (left > 1) factor = product(factor, factor);
    }
    if (power > 0) return found;
    std::vector<Complex> adjoint(found.size());
    for (std::size_t k = 0; k < found.size(); ++k) adjoint[k] = std::conj(found[k % size * size + k / size]);
    return adjoint;
  }
  std::vector<Complex> vectors;
  const std::vector<double> phases = eigenphases(matrix, vectors);
  std::vector<Complex> scaled = vectors;
  std::vector<Complex> adjoint(vectors.size());
  for (std::size_t k = 0; k < vectors.size(); ++k) {
    scaled[k] *= std::polar(1.0, power * phases[k % size]);
    adjoint[k] = std::conj(vectors[k % size * size + k / size]);
  }
  return product(scaled, adjoint);
}

}  // namespace onehop::quantum::language
