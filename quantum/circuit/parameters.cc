// Gates whose angles are linear expressions of a circuit's parameters.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <string_view>

#include "onehop/error.h"
#include "onehop/quantum/circuit.h"

namespace onehop::quantum {
namespace {

constexpr double pi = std::numbers::pi;

// The value of a parameter before it is bound: arbitrary, so that no gate takes a special form such as the identity.
double unbound_value(int parameter) { return 0.7390851332151607 + 0.3183098861837907 * parameter; }

double unbound(const Expression& expression) {
  double value = expression.constant;
  for (const auto& [parameter, factor] : expression.terms) value += factor * unbound_value(parameter);
  // An unlucky sum of parameters must not give a special angle.
  return std::abs(std::sin(2 * value)) > 1e-3 ? value : value + 0.1;
}

bool has_one_angle(const Operation& operation) {
  return operation.kind == OperationKind::pauli_rotation || operation.kind == OperationKind::global_phase;
}

// The same operation with these angles.
Operation refilled(const Operation& operation, const std::vector<double>& angles) {
  Operation result = operation;
  result.angles.clear();
  if (has_one_angle(operation)) {
    result.angle = angles.front();
    return result;
  }
  // Further controls may have been added, but the matrix is that of the named gate.
  const auto& names = gate_names();
  const auto known =
      std::find_if(names.begin(), names.end(), [&](const GateName& g) { return g.name == operation.name; });
  std::vector<int> qubits(known == names.end() ? 0 : static_cast<std::size_t>(std::max(known->qubits, 1)));
  std::iota(qubits.begin(), qubits.end(), 0);
  result.values = gate(operation.name, qubits, angles).values;
  return result;
}

Expression scaled(const Expression& expression, double factor) {
  Expression result = expression;
  result.constant *= factor;
  for (auto& term : result.terms) term.second *= factor;
  return result;
}

// Appends the rotations and phases of one gate.
class Rewriting {
 public:
  Rewriting(const Operation& gate, std::vector<Operation>& out) : gate_(gate), out_(out) {}

  // Returns false if the gate has no such form.
  bool run() {
    const auto& angles = gate_.angles;
    if (has_one_angle(gate_)) {
      out_.push_back(gate_);
      return true;
    }
    static constexpr std::array<std::pair<std::string_view, const char*>, 10> rotations{{{"rx", "X"},
                                                                                         {"ry", "Y"},
                                                                                         {"rz", "Z"},
                                                                                         {"crx", "X"},
                                                                                         {"cry", "Y"},
                                                                                         {"crz", "Z"},
                                                                                         {"rxx", "XX"},
                                                                                         {"ryy", "YY"},
                                                                                         {"rzz", "ZZ"},
                                                                                         {"rzx", "ZX"}}};
    for (const auto& [name, paulis] : rotations) {
      if (gate_.name == name) return rotation(paulis, angles[0]);
    }
    for (const std::string_view name : {"p", "phase", "u1", "cp", "cphase", "cu1", "mcphase"}) {
      if (gate_.name == name) return phase(angles[0], true);
    }
    if (gate_.name == "gphase") return phase(angles[0], false);
    if (gate_.name == "u0") return true;
    if (gate_.name == "r") {
      return rotation("Z", scaled(angles[1], -1)) && rotation("X", angles[0]) && rotation("Z", angles[1]);
    }
    if (gate_.name == "u2") return general({.constant = pi / 2}, angles[0], angles[1]);
    for (const std::string_view name : {"u", "U", "u3", "cu3", "cu"}) {
      if (gate_.name != name) continue;
      return (gate_.name != "cu" || phase(angles[3], false)) && general(angles[0], angles[1], angles[2]);
    }
    return false;
  }

 private:
  // The matrix of U(theta, phi, lambda) is P(phi) RY(theta) P(lambda).
  bool general(const Expression& theta, const Expression& phi, const Expression& lambda) {
    return phase(lambda, true) && rotation("Y", theta) && phase(phi, true);
  }

  bool rotation(const char* paulis, const Expression& angle) {
    Operation& made = add(OperationKind::pauli_rotation, angle);
    made.paulis = paulis;
    return true;
  }

  // exp(i angle) where the controls hold and, `with_targets`, the targets are 1.
  bool phase(const Expression& angle, bool with_targets) {
    Operation& made = add(OperationKind::global_phase, angle);
    made.targets.clear();
    for (std::size_t t = 0; with_targets && t < gate_.targets.size(); ++t) {
      made.control_values |= std::uint64_t{1} << made.controls.size();
      made.controls.push_back(gate_.targets[t]);
    }
    return true;
  }

  Operation& add(OperationKind kind, const Expression& angle) {
    Operation& made = out_.emplace_back(gate_);
    made.kind = kind;
    made.values.clear();
    made.angle = unbound(angle);
    made.angles.clear();
    if (angle.terms.empty()) {
      made.angle = angle.constant;
    } else {
      made.angles.push_back(angle);
    }
    return made;
  }

  const Operation& gate_;
  std::vector<Operation>& out_;
};

bool has_parameters(const Operation& operation) {
  return std::ranges::any_of(operation.angles, [](const Expression& angle) { return !angle.terms.empty(); });
}

// Names an operation with the first parameter of its angles, if it has any, as messages begin.
std::string named(const Circuit& circuit, std::size_t index) {
  const Operation& operation = circuit.operations[index];
  std::string text = "operation " + std::to_string(index) + " (" + operation.name + ")";
  for (const Expression& angle : operation.angles) {
    if (angle.terms.empty()) continue;
    const auto which = static_cast<std::size_t>(angle.terms.front().first);
    return text + ": parameter '" +
           (which < circuit.parameters.size() ? circuit.parameters[which] : std::to_string(which)) + "'";
  }
  return text;
}

}  // namespace

double Expression::value(std::span<const double> values) const {
  double sum = constant;
  for (const auto& [parameter, factor] : terms) sum += factor * values[static_cast<std::size_t>(parameter)];
  return sum;
}

Operation parametrised_gate(const std::string& name, const std::vector<int>& qubits,
                            const std::vector<Expression>& angles) {
  std::vector<double> numbers;
  bool varies = false;
  for (const Expression& angle : angles) {
    numbers.push_back(angle.terms.empty() ? angle.constant : unbound(angle));
    varies = varies || !angle.terms.empty();
  }
  Operation operation = gate(name, qubits, numbers);
  if (varies) operation.angles = angles;
  return operation;
}

void Circuit::require_bound() const {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (has_parameters(operations[i])) throw BadInput(named(*this, i) + " has no value; bind all parameters first");
  }
}

void check_values(std::span<const double> values, std::span<const std::string> parameters) {
  if (values.size() != parameters.size()) {
    throw BadInput("expected a value for each of " + std::to_string(parameters.size()) + " parameters, found " +
                   std::to_string(values.size()));
  }
  for (std::size_t p = 0; p < values.size(); ++p) {
    if (!std::isfinite(values[p])) {
      throw BadInput("parameter '" + parameters[p] + "': expected a finite number, found " + std::to_string(values[p]));
    }
  }
}

Circuit bind_parameters(const Circuit& circuit, std::span<const double> values) {
  check_values(values, circuit.parameters);
  Circuit result = circuit;
  result.parameters.clear();
  for (std::size_t i = 0; i < result.operations.size(); ++i) {
    Operation& operation = result.operations[i];
    if (operation.angles.empty()) continue;
    std::vector<double> angles;
    for (const Expression& angle : operation.angles) {
      angles.push_back(angle.value(values));
      if (!std::isfinite(angles.back())) {
        throw BadInput(named(circuit, i) + ": expected a finite angle, found " + std::to_string(angles.back()) +
                       "; choose smaller factors or values of its parameters");
      }
    }
    operation = refilled(operation, angles);
  }
  return result;
}

Circuit with_rotations(const Circuit& circuit, std::vector<int>* origin) {
  Circuit result = circuit;
  result.operations.clear();
  if (origin != nullptr) origin->clear();
  for (std::size_t i = 0; i < circuit.operations.size(); ++i) {
    const Operation& operation = circuit.operations[i];
    if (operation.angles.empty()) {
      result.operations.push_back(operation);
    } else if (!Rewriting(operation, result.operations).run()) {
      throw BadInput(named(circuit, i) +
                     ": expected a gate whose angles are those of rotations and phases, which has derivatives; use a "
                     "gate of OpenQASM or pauli_rotation");
    }
    if (origin != nullptr) origin->resize(result.operations.size(), static_cast<int>(i));
  }
  return result;
}

}  // namespace onehop::quantum
