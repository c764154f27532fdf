// The table of named gates. Conventions, in particular of phases, are Qiskit's; docs/reference/quantum_gates.md lists
// the matrices.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string_view>

#include "onehop/error.h"
#include "onehop/quantum/circuit.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

using Parameters = std::vector<double>;
constexpr Complex i1{0, 1};
constexpr double pi = std::numbers::pi;
constexpr double half_sqrt = std::numbers::sqrt2 / 2;
constexpr int any_number = -1;

Complex phase(double angle) { return {std::cos(angle), std::sin(angle)}; }

void matrix(Operation& operation, std::vector<Complex> values) {
  operation.kind = OperationKind::matrix;
  operation.values = std::move(values);
}

void diagonal(Operation& operation, std::vector<Complex> values) {
  operation.kind = OperationKind::diagonal;
  operation.values = std::move(values);
}

void rotation(Operation& operation, const char* paulis, double angle) {
  operation.kind = OperationKind::pauli_rotation;
  operation.paulis = paulis;
  operation.angle = angle;
}

void u(Operation& operation, double theta, double phi, double lambda, double gamma = 0) {
  const double c = std::cos(theta / 2);
  const double s = std::sin(theta / 2);
  // Products of phases: a sum of large angles is rounded so far that the matrix would not be unitary.
  const Complex first = phase(gamma);
  const Complex row = first * phase(phi);
  matrix(operation, {first * c, -first * phase(lambda) * s, row * s, row * phase(lambda) * c});
}

void x(Operation& o, const Parameters&) { matrix(o, {0, 1, 1, 0}); }
void y(Operation& o, const Parameters&) { matrix(o, {0, -i1, i1, 0}); }
void z(Operation& o, const Parameters&) { diagonal(o, {1, -1}); }
void h(Operation& o, const Parameters&) { matrix(o, {half_sqrt, half_sqrt, half_sqrt, -half_sqrt}); }
void s(Operation& o, const Parameters&) { diagonal(o, {1, i1}); }
void sdg(Operation& o, const Parameters&) { diagonal(o, {1, -i1}); }
void t(Operation& o, const Parameters&) { diagonal(o, {1, {half_sqrt, half_sqrt}}); }
void tdg(Operation& o, const Parameters&) { diagonal(o, {1, {half_sqrt, -half_sqrt}}); }
void sx(Operation& o, const Parameters&) { matrix(o, {{0.5, 0.5}, {0.5, -0.5}, {0.5, -0.5}, {0.5, 0.5}}); }
void sxdg(Operation& o, const Parameters&) { matrix(o, {{0.5, -0.5}, {0.5, 0.5}, {0.5, 0.5}, {0.5, -0.5}}); }
void id(Operation& o, const Parameters&) { diagonal(o, {1, 1}); }
void p(Operation& o, const Parameters& a) { diagonal(o, {1, phase(a[0])}); }
void rx(Operation& o, const Parameters& a) { u(o, a[0], -pi / 2, pi / 2); }
void ry(Operation& o, const Parameters& a) { u(o, a[0], 0, 0); }
void rz(Operation& o, const Parameters& a) { diagonal(o, {phase(-a[0] / 2), phase(a[0] / 2)}); }
void r(Operation& o, const Parameters& a) { u(o, a[0], a[1] - pi / 2, pi / 2 - a[1]); }
void u2(Operation& o, const Parameters& a) { u(o, pi / 2, a[0], a[1]); }
void u3(Operation& o, const Parameters& a) { u(o, a[0], a[1], a[2]); }
void u4(Operation& o, const Parameters& a) { u(o, a[0], a[1], a[2], a[3]); }
void swap(Operation& o, const Parameters&) { o.kind = OperationKind::swap; }
void rxx(Operation& o, const Parameters& a) { rotation(o, "XX", a[0]); }
void ryy(Operation& o, const Parameters& a) { rotation(o, "YY", a[0]); }
void rzx(Operation& o, const Parameters& a) { rotation(o, "ZX", a[0]); }
void rzz(Operation& o, const Parameters& a) {
  const Complex even = phase(-a[0] / 2);
  const Complex odd = phase(a[0] / 2);
  diagonal(o, {even, odd, odd, even});
}
void gphase(Operation& o, const Parameters& a) {
  o.kind = OperationKind::global_phase;
  o.angle = a[0];
}

// A row with a single nonzero number, in a matrix that is the identity otherwise.
struct Entry {
  std::size_t row;
  std::size_t column;
  Complex value;
};
void nearly_identity(Operation& o, std::initializer_list<Entry> entries) {
  const std::size_t size = std::size_t{1} << o.targets.size();
  std::vector<Complex> values(size * size, 0);
  for (std::size_t row = 0; row < size; ++row) values[row * size + row] = 1;
  for (const Entry& entry : entries) values[entry.row * size + entry.row] = 0;
  for (const Entry& entry : entries) values[entry.row * size + entry.column] = entry.value;
  matrix(o, std::move(values));
}

void iswap(Operation& o, const Parameters&) { nearly_identity(o, {{1, 2, i1}, {2, 1, i1}}); }
void dcx(Operation& o, const Parameters&) { nearly_identity(o, {{1, 3, 1}, {2, 1, 1}, {3, 2, 1}}); }
void rccx(Operation& o, const Parameters&) { nearly_identity(o, {{3, 7, -i1}, {5, 5, -1}, {7, 3, i1}}); }
void rc3x(Operation& o, const Parameters&) { nearly_identity(o, {{3, 3, i1}, {7, 15, 1}, {11, 11, -i1}, {15, 7, -1}}); }
void ecr(Operation& o, const Parameters&) {
  const Complex a = half_sqrt;
  const Complex b = half_sqrt * i1;
  matrix(o, {0, a, 0, b, a, 0, -b, 0, 0, b, 0, a, -b, 0, a, 0});
}

struct Definition {
  std::string_view name;
  int controls;  // any_number: all qubits except the targets
  int targets;
  int parameters;
  void (*fill)(Operation&, const Parameters&);
};

constexpr std::array definitions = {
    // one qubit
    Definition{"id", 0, 1, 0, id}, Definition{"u0", 0, 1, 1, id}, Definition{"x", 0, 1, 0, x},
    Definition{"y", 0, 1, 0, y}, Definition{"z", 0, 1, 0, z}, Definition{"h", 0, 1, 0, h}, Definition{"s", 0, 1, 0, s},
    Definition{"sdg", 0, 1, 0, sdg}, Definition{"t", 0, 1, 0, t}, Definition{"tdg", 0, 1, 0, tdg},
    Definition{"sx", 0, 1, 0, sx}, Definition{"sxdg", 0, 1, 0, sxdg}, Definition{"p", 0, 1, 1, p},
    Definition{"phase", 0, 1, 1, p}, Definition{"u1", 0, 1, 1, p}, Definition{"u2", 0, 1, 2, u2},
    Definition{"u3", 0, 1, 3, u3}, Definition{"u", 0, 1, 3, u3}, Definition{"U", 0, 1, 3, u3},
    Definition{"rx", 0, 1, 1, rx}, Definition{"ry", 0, 1, 1, ry}, Definition{"rz", 0, 1, 1, rz},
    Definition{"r", 0, 1, 2, r},
    // two qubits
    Definition{"cx", 1, 1, 0, x}, Definition{"CX", 1, 1, 0, x}, Definition{"cy", 1, 1, 0, y},
    Definition{"cz", 1, 1, 0, z}, Definition{"ch", 1, 1, 0, h}, Definition{"cs", 1, 1, 0, s},
    Definition{"csdg", 1, 1, 0, sdg}, Definition{"csx", 1, 1, 0, sx}, Definition{"cp", 1, 1, 1, p},
    Definition{"cphase", 1, 1, 1, p}, Definition{"cu1", 1, 1, 1, p}, Definition{"cu3", 1, 1, 3, u3},
    Definition{"cu", 1, 1, 4, u4}, Definition{"crx", 1, 1, 1, rx}, Definition{"cry", 1, 1, 1, ry},
    Definition{"crz", 1, 1, 1, rz}, Definition{"swap", 0, 2, 0, swap}, Definition{"iswap", 0, 2, 0, iswap},
    Definition{"dcx", 0, 2, 0, dcx}, Definition{"ecr", 0, 2, 0, ecr}, Definition{"rxx", 0, 2, 1, rxx},
    Definition{"ryy", 0, 2, 1, ryy}, Definition{"rzz", 0, 2, 1, rzz}, Definition{"rzx", 0, 2, 1, rzx},
    // more
    Definition{"ccx", 2, 1, 0, x}, Definition{"ccz", 2, 1, 0, z}, Definition{"cswap", 1, 2, 0, swap},
    Definition{"rccx", 0, 3, 0, rccx}, Definition{"rc3x", 0, 4, 0, rc3x}, Definition{"rcccx", 0, 4, 0, rc3x},
    Definition{"c3x", 3, 1, 0, x}, Definition{"c3sqrtx", 3, 1, 0, sx}, Definition{"c4x", 4, 1, 0, x},
    Definition{"mcx", any_number, 1, 0, x}, Definition{"mcphase", any_number, 1, 1, p},
    // none
    Definition{"gphase", 0, 0, 1, gphase}};

const Definition& find(const std::string& name) {
  const auto* const found =
      std::find_if(definitions.begin(), definitions.end(), [&](const Definition& one) { return one.name == name; });
  if (found == definitions.end()) {
    throw BadInput("expected the name of a gate of OpenQASM's stdgates.inc or qelib1.inc, found '" + name +
                   "'; docs/reference/quantum_gates.md lists them");
  }
  return *found;
}

void check_numbers(const Definition& definition, std::size_t qubits, std::size_t parameters) {
  const std::string gate = "gate " + std::string(definition.name) + ": ";
  const auto targets = static_cast<std::size_t>(definition.targets);
  if (definition.controls == any_number) {
    if (qubits < targets) {
      throw BadInput(gate + "expected at least " + base::counted(static_cast<std::int64_t>(targets), "qubit") +
                     ", found " + std::to_string(qubits));
    }
  } else if (qubits != targets + static_cast<std::size_t>(definition.controls)) {
    throw BadInput(gate + "expected " + base::counted(definition.targets + definition.controls, "qubit") + ", found " +
                   std::to_string(qubits));
  }
  if (parameters != static_cast<std::size_t>(definition.parameters)) {
    throw BadInput(gate + "expected " + base::counted(definition.parameters, "parameter") + ", found " +
                   std::to_string(parameters));
  }
}

// cos(angle/2) 1 - i sin(angle/2) P. A Pauli string maps each basis state to one other, times a factor.
std::vector<Complex> rotation_matrix(const Operation& operation) {
  const std::size_t size = std::size_t{1} << operation.targets.size();
  std::vector<Complex> values(size * size, 0);
  const double cosine = std::cos(operation.angle / 2);
  const Complex sine = -i1 * std::sin(operation.angle / 2);
  for (std::size_t column = 0; column < size; ++column) {
    std::size_t row = column;
    Complex factor = 1;
    for (std::size_t k = 0; k < operation.paulis.size(); ++k) {
      const bool one = ((column >> k) & 1U) != 0;
      if (operation.paulis[k] != 'Z') row ^= std::size_t{1} << k;
      if (operation.paulis[k] == 'Z' && one) factor = -factor;
      if (operation.paulis[k] == 'Y') factor *= one ? -i1 : i1;
    }
    values[column * size + column] += cosine;
    values[row * size + column] += sine * factor;
  }
  return values;
}

std::vector<Complex> diagonal_matrix(const std::vector<Complex>& values) {
  std::vector<Complex> full(values.size() * values.size(), 0);
  for (std::size_t k = 0; k < values.size(); ++k) full[k * values.size() + k] = values[k];
  return full;
}

}  // namespace

Operation gate(const std::string& name, const std::vector<int>& qubits, const std::vector<double>& parameters) {
  const Definition& definition = find(name);
  check_numbers(definition, qubits.size(), parameters.size());
  for (const double parameter : parameters) {
    if (!std::isfinite(parameter)) {
      throw BadInput("gate '" + name + "': expected finite angles, found " + std::to_string(parameter));
    }
  }
  const auto first_target = qubits.end() - definition.targets;
  Operation operation;
  operation.name = name;
  operation.controls.assign(qubits.begin(), first_target);
  operation.targets.assign(first_target, qubits.end());
  operation.control_values = (std::uint64_t{1} << operation.controls.size()) - 1;
  definition.fill(operation, parameters);
  return operation;
}

const std::vector<GateName>& gate_names() {
  static const std::vector<GateName> names = [] {
    std::vector<GateName> all;
    for (const Definition& one : definitions) {
      const int qubits = one.controls == any_number ? any_number : one.controls + one.targets;
      all.push_back({std::string(one.name), qubits, one.parameters});
    }
    return all;
  }();
  return names;
}

std::vector<Complex> matrix_of(const Operation& operation) {
  if (!operation.angles.empty()) {
    throw BadInput("expected a gate with numbers as angles, found '" + operation.name +
                   "', which depends on parameters; bind them first");
  }
  switch (operation.kind) {
    case OperationKind::matrix:
      return operation.values;
    case OperationKind::diagonal:
      return diagonal_matrix(operation.values);
    case OperationKind::swap:
      return {1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1};
    case OperationKind::pauli_rotation:
      return rotation_matrix(operation);
    case OperationKind::global_phase:
      return {phase(operation.angle)};
    default:
      throw BadInput("expected a gate, found '" + operation.name + "', which has no matrix");
  }
}

bool is_diagonal(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::diagonal:
    case OperationKind::global_phase:
      return true;
    case OperationKind::pauli_rotation:
      return operation.paulis.find_first_not_of('Z') == std::string::npos;
    case OperationKind::matrix: {
      const std::size_t size = std::size_t{1} << operation.targets.size();
      for (std::size_t k = 0; k < operation.values.size(); ++k) {
        if (k / size != k % size && std::abs(operation.values[k]) > 1e-15) return false;
      }
      return true;
    }
    default:
      return false;
  }
}

}  // namespace onehop::quantum
