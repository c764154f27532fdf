// Definitions and calls of gates.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "onehop/error.h"
#include "quantum/language/program/expander.h"
#include "src/base/text.h"

namespace onehop::quantum::language {
namespace {

constexpr std::int64_t most_controls = 61;
constexpr std::int64_t largest_compared = 200;  // operations of a gate that may be a gate of the library
constexpr int most_compared = 5;                // its qubits

bool contains(const std::vector<Parameter>& all, std::string_view name) {
  return std::ranges::find(all, name, &Parameter::name) != all.end();
}

bool is_finite(const Operation& operation) {
  return std::isfinite(operation.angle) && std::ranges::all_of(operation.values, [](const Complex& one) {
           return std::isfinite(one.real()) && std::isfinite(one.imag());
         });
}

// Whether a body is the same product of gates for all parameters, of angles without steps and corners.
bool is_smooth(const Statement& definition) {
  const auto smooth = [&](const auto& self, const Expression& one) -> bool {
    constexpr std::array operations = {symbol("+"), symbol("-"), symbol("*"), symbol("/")};
    Value ignored;
    const bool number = one.kind == ExpressionKind::integer || one.kind == ExpressionKind::real;
    const bool known = one.kind == ExpressionKind::name &&
                       (contains(definition.parameters, one.text) || Arithmetic::constant(one.text, ignored));
    const bool operation = (one.kind == ExpressionKind::unary || one.kind == ExpressionKind::binary) &&
                           std::ranges::find(operations, one.symbol) != operations.end();
    return (number || known || operation) &&
           std::ranges::all_of(one.parts, [&](const Expression& part) { return self(self, part); });
  };
  return std::ranges::all_of(definition.body, [&](const Statement& one) {
    return one.kind == StatementKind::gate_call && one.gate->smooth &&
           std::ranges::all_of(one.values, [&](const Expression& angle) { return smooth(smooth, angle); }) &&
           std::ranges::find(one.modifiers, ModifierKind::power, &Modifier::kind) == one.modifiers.end();
  });
}

}  // namespace

void Expander::define_library(std::string_view name) {
  const auto& names = gate_names();
  const auto known = std::ranges::find(names, name, &GateName::name);
  auto made = std::make_unique<Gate>();
  made->name = known->name;
  made->qubits = known->qubits;
  made->parameters = known->parameters;
  gates_[made->name] = made.get();
  all_gates_.push_back(std::move(made));
}

// A program may define a gate of a library anew, but nothing twice: calls before and after would mean different things.
void Expander::check_new_name(const Statement& definition) {
  if (defined_.insert(definition.name).second) return;
  fail(definition.name_place, "'" + std::string(definition.name) + "' is defined already; take another name");
}

void Expander::define_gate(Statement statement) {
  check_new_name(statement);
  definitions_.push_back(std::make_unique<Statement>(std::move(statement)));
  Statement& definition = *definitions_.back();
  auto made = std::make_unique<Gate>();
  made->name = definition.name;
  made->qubits = static_cast<int>(definition.names.size());
  made->parameters = static_cast<int>(definition.parameters.size());
  made->definition = &definition;
  made->opaque = definition.kind == StatementKind::opaque;
  made->cost = std::max<std::int64_t>(check_body(definition.body, definition), 1);
  made->smooth = is_smooth(definition);
  use_known_gate(*made);
  gates_[made->name] = made.get();
  all_gates_.push_back(std::move(made));
}

// Checks the gates that a body calls; returns the number of its operations, without repetitions.
std::int64_t Expander::check_body(std::vector<Statement>& body, const Statement& definition) {
  std::int64_t cost = 0;
  for (Statement& one : body) {
    std::int64_t more = 0;
    switch (one.kind) {
      case StatementKind::gate_call:
        check_call(one, definition);
        more = one.gate->cost;
        break;
      case StatementKind::if_else:
        more = std::min(check_body(one.body, definition), check_body(one.otherwise, definition));
        break;
      case StatementKind::for_loop:
      case StatementKind::block:
      case StatementKind::box:
        more = check_body(one.body, definition);
        break;
      case StatementKind::barrier:
      case StatementKind::delay:
      case StatementKind::none:
        break;
      default:
        fail(one.place, "expected gates in the body of a gate, found another statement; move it outside");
    }
    cost = std::min(cost + more, std::int64_t{1} << 60);
  }
  return cost;
}

void Expander::check_call(Statement& call, const Statement& definition) {
  call.gate = find_gate(call);
  const std::size_t controls = call.modifiers.empty() ? 0 : controls_of(call);
  check_numbers(*call.gate, call, call.targets.size() - std::min(controls, call.targets.size()));
  for (std::size_t k = 0; k < call.targets.size(); ++k) {
    const Expression& one = call.targets[k];
    if (one.kind != ExpressionKind::name || !contains(definition.names, one.text)) {
      const bool named = one.kind == ExpressionKind::name;
      fail(one.place, "expected a qubit of the gate, found " +
                          (named ? "'" + std::string(one.text) + "'" : std::string("another one")) +
                          "; name its qubits in the first line of the gate");
    }
    for (std::size_t j = 0; j < k; ++j) {
      if (call.targets[j].text == one.text) fail(call.place, "duplicate qubits; a gate takes each qubit once");
    }
  }
  const auto check = [&](const auto& self, const Expression& one) -> void {
    Value ignored;
    if (one.kind == ExpressionKind::name && !contains(definition.parameters, one.text) &&
        !Arithmetic::constant(one.text, ignored)) {
      const Variable* const found = find(one.text);
      if (found == nullptr) fail(one.place, "'" + std::string(one.text) + "' is not defined");
      if (!found->constant && !contains(definition.names, one.text)) {
        fail(one.place, "expected a qubit or parameter of the gate, found '" + std::string(one.text) +
                            "', which is declared outside of it and no constant");
      }
    }
    for (const Expression& part : one.parts) self(self, part);
  };
  if (parser_.version() == 2) {
    for (const Expression& one : call.values) check(check, one);
  }
}

// Programs of Amazon Braket use its gates without an include.
void Expander::define_braket() {
  has_braket_ = true;
  for (const std::string_view name : library_gates("braket")) {
    if (!gates_.contains(name)) define_library(name);
  }
  Parser library(sources_, sources_.add("gates of Amazon Braket", std::string(library_text("braket"))));
  while (std::optional<Statement> one = library.next()) {
    if (!gates_.contains(one->name)) define_gate(std::move(*one));
  }
}

const Gate* Expander::find_gate(const Statement& call) {
  if (call.gate != nullptr) return call.gate;
  if (const auto found = gates_.find(call.name); found != gates_.end()) return found->second;
  const std::string name(call.name);
  if (parser_.version() == 2) {
    const std::vector<std::string_view> library = library_gates("qelib1.inc");
    const bool missing = std::ranges::find(library, call.name) != library.end();
    fail(call.name_place, "'" + name + "' is not defined; " +
                              (missing ? "is `include \"qelib1.inc\";` missing?" : "define it with `gate`"));
  }
  if (!has_braket_ && name != "u") {
    define_braket();
    return find_gate(call);
  }
  if (name == "u") fail(call.name_place, "gate 'u' is not defined; write U(theta, phi, lambda)");
  fail(call.name_place, "gate '" + name + "' is not defined; define it with `gate`, or use one of stdgates.inc");
}

void Expander::check_numbers(const Gate& gate, const Statement& call, std::size_t qubits) const {
  const std::string name(gate.name);
  if (call.values.size() != static_cast<std::size_t>(gate.parameters)) {
    std::string angles;
    for (int k = 0; k < gate.parameters; ++k) angles += k == 0 ? "(angle" : ", angle";
    fail(call.name_place, "expected " + base::counted(gate.parameters, "parameter") + " of the gate '" + name +
                              "', found " + (call.values.empty() ? "none" : std::to_string(call.values.size())) +
                              "; write " + name + angles + (angles.empty() ? "" : ")"));
  }
  if (qubits != static_cast<std::size_t>(gate.qubits)) {
    fail(call.place, "expected " + base::counted(gate.qubits, "qubit") + " of the gate '" + name + "', found " +
                         std::to_string(qubits));
  }
}

std::size_t Expander::controls_of(const Statement& call) {
  std::int64_t controls = 0;
  for (const Modifier& one : call.modifiers) {
    if (one.kind != ModifierKind::control && one.kind != ModifierKind::negative_control) continue;
    std::int64_t more = 1;
    if (!one.argument.empty()) {
      more = arithmetic_.integer(evaluate(one.argument[0]), one.argument[0].place, "a number of controls");
    }
    controls += std::clamp<std::int64_t>(more, 0, 1 << 20);
    if (more < 1 || controls > most_controls) {
      fail(one.place, "expected 1 to 61 controls, found " + std::to_string(more < 1 ? more : controls));
    }
  }
  return static_cast<std::size_t>(controls);
}

void Expander::gate_call(const Statement& statement) {
  if (statement.gate == nullptr && statement.modifiers.empty()) {
    const auto found = subroutines_.find(statement.name);
    if (found != subroutines_.end()) {
      std::vector<const Expression*> arguments;
      for (const Expression& one : statement.values) arguments.push_back(&one);
      for (const Expression& one : statement.targets) arguments.push_back(&one);
      (void)call(*found->second, arguments, statement.place);
      return;
    }
  }
  const Gate& gate = *find_gate(statement);
  const std::size_t controls = statement.modifiers.empty() ? 0 : controls_of(statement);
  check_numbers(gate, statement, statement.targets.size() - std::min(controls, statement.targets.size()));
  std::vector<Linear> angles;
  for (const Expression& one : statement.values) angles.push_back(angle_of(one));
  std::vector<std::vector<int>> operands;
  std::size_t times = 1;
  for (const Expression& one : statement.targets) {
    operands.push_back(qubits_of(one));
    const std::size_t size = operands.back().size();
    if (size == 1) continue;
    if (times != 1 && times != size) {
      fail(one.place, "expected registers of the same size, found " + std::to_string(times) + " and " +
                          std::to_string(size) + " qubits");
    }
    times = size;
  }
  if (gate_body_ == nullptr) count_operations(statement.place, gate.cost * static_cast<std::int64_t>(times));
  for (std::size_t k = 0; k < times; ++k) {
    std::vector<int> qubits;
    for (const std::vector<int>& one : operands) {
      const int qubit = one.size() == 1 ? one[0] : one[k];
      if (std::ranges::find(qubits, qubit) != qubits.end()) {
        fail(statement.place, "duplicate qubits; a gate takes each qubit once");
      }
      qubits.push_back(qubit);
    }
    for (Operation& one : operations_of(gate, statement, angles, qubits)) {
      if (gate_body_ != nullptr) {
        gate_body_->push_back(std::move(one));
      } else {
        emit_gate(std::move(one), statement.place);
      }
    }
  }
}

std::vector<Operation> Expander::operations_of(const Gate& gate, const Statement& call,
                                               const std::vector<Linear>& angles, const std::vector<int>& qubits) {
  std::vector<Operation> found;
  if (call.modifiers.empty()) {
    expand(gate, angles, qubits, call.place, found);
    return found;
  }
  std::size_t at = controls_of(call);
  expand(gate, angles, {qubits.begin() + static_cast<std::ptrdiff_t>(at), qubits.end()}, call.place, found);
  for (std::size_t k = call.modifiers.size(); k-- > 0;) {
    const Modifier& one = call.modifiers[k];
    const Value argument = one.argument.empty() ? integer_value(1) : evaluate(one.argument[0]);
    std::string wrong;
    if (one.kind == ModifierKind::inverse) {
      wrong = invert(found);
    } else if (one.kind == ModifierKind::power) {
      wrong = raise(found, arithmetic_.real(argument, one.place, "a power"));
      check_time(one.place);  // the power of a gate on many qubits takes seconds
    } else {
      const auto count = static_cast<std::size_t>(arithmetic_.integer(argument, one.place, "a number of controls"));
      const auto end = qubits.begin() + static_cast<std::ptrdiff_t>(at);
      const std::uint64_t ones = (std::uint64_t{1} << count) - 1;
      add_controls(found, {end - static_cast<std::ptrdiff_t>(count), end},
                   one.kind == ModifierKind::negative_control ? 0 : ones);
      at -= count;
    }
    if (!wrong.empty()) fail(one.place, wrong);
  }
  return found;
}

Operation Expander::named(const Gate& gate, const std::vector<Linear>& angles, const std::vector<int>& qubits,
                          Place place) {
  std::vector<onehop::quantum::Expression> expressions;
  std::vector<double> numbers;
  const bool constant = std::ranges::all_of(angles, &Linear::is_constant);
  for (const Linear& one : angles) {
    numbers.push_back(one.constant);
    if (constant) continue;
    onehop::quantum::Expression expression{one.constant, one.inputs};
    for (const auto& [bit, factor] : one.bits) {
      expression.terms.emplace_back(first_bit_term + static_cast<int>(bit_terms_.size()), factor);
      bit_terms_.push_back(bit);
    }
    expressions.push_back(std::move(expression));
  }
  try {
    const std::string name(gate.name);
    Operation made =
        constant ? onehop::quantum::gate(name, qubits, numbers) : parametrised_gate(name, qubits, expressions);
    if (!is_finite(made))
      throw BadInput("gate '" + name + "': expected finite numbers in its matrix, found an infinity");
    return made;
  } catch (const BadInput& error) {
    fail(place, std::string(error.what()) + "; write one of finite numbers");
  }
}

void Expander::expand(const Gate& gate, const std::vector<Linear>& angles, const std::vector<int>& qubits, Place place,
                      std::vector<Operation>& out) {
  if (gate.definition == nullptr) {
    out.push_back(named(gate, angles, qubits, place));
    return;
  }
  if (gate.opaque) {
    if (gate.name == "delay") return;
    fail(place, "the instruction '" + std::string(gate.name) +
                    "' has neither a matrix nor a definition; define it with `gate`");
  }
  Scope scope;
  const std::size_t depth = scopes_.size();
  const auto add = [&](const Parameter& parameter, Variable variable) {
    variable.depth = depth + 1;
    variable.constant = true;
    scope.emplace(parameter.name, std::move(variable));
  };
  for (std::size_t k = 0; k < angles.size(); ++k) {
    Variable angle;
    angle.value = real_value(0);
    angle.value.real = angles[k];
    angle.type = angle.value.type;
    add(gate.definition->parameters[k], std::move(angle));
  }
  for (std::size_t k = 0; k < qubits.size(); ++k) {
    Variable qubit;
    qubit.kind = Kind::qubits;
    qubit.type = {TypeKind::qubit, 0, {}};
    qubit.places = {qubits[k]};
    add(gate.definition->names[k], std::move(qubit));
  }
  const std::size_t base = std::exchange(base_, depth);
  std::vector<Operation>* const outer = std::exchange(gate_body_, &out);
  std::vector<Loop> loops = std::exchange(loops_, {});
  scopes_.push_back(std::move(scope));
  (void)execute_all(gate.definition->body);
  scopes_.pop_back();
  loops_ = std::move(loops);
  gate_body_ = outer;
  base_ = base;
}

// A definition of a gate of the library that says the same becomes that gate, which is faster.
void Expander::use_known_gate(Gate& gate) {
  const auto& names = gate_names();
  const auto known = std::ranges::find(names, gate.name, &GateName::name);
  if (gate.opaque || known == names.end() || known->qubits != gate.qubits || known->parameters != gate.parameters ||
      gate.qubits > most_compared || gate.qubits < 1 || gate.cost > largest_compared || !gate.smooth) {
    return;
  }
  std::vector<int> qubits(static_cast<std::size_t>(gate.qubits));
  std::iota(qubits.begin(), qubits.end(), 0);
  std::vector<Linear> angles(static_cast<std::size_t>(gate.parameters));
  for (std::size_t k = 0; k < angles.size(); ++k) angles[k].constant = std::sqrt(0.1 + static_cast<double>(k));
  Gate library = gate;
  library.name = known->name;
  library.definition = nullptr;
  std::vector<Operation> own;
  try {
    expand(gate, angles, qubits, {}, own);
  } catch (const BadInput&) {  // for these angles
    scopes_.resize(1);
    base_ = 0;
    gate_body_ = nullptr;
    loops_.clear();
    evaluations_ = 0;
    return;
  }
  std::vector<Operation> theirs;
  expand(library, angles, qubits, {}, theirs);
  const std::vector<Complex> a = matrix_of(own, qubits);
  const std::vector<Complex> b = matrix_of(theirs, qubits);
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (!(std::abs(a[k] - b[k]) < 1e-13)) return;
  }
  gate = library;
}

}  // namespace onehop::quantum::language
