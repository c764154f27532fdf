// Declarations, measurements, resets and barriers.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "quantum/language/program/expander.h"

namespace onehop::quantum::language {
namespace {

constexpr int most_bits = 65536;

}  // namespace

Expander::Flow Expander::execute(const Statement& statement) {
  if (statement.kind != StatementKind::gate_call) spend(statement.place, 1);
  const int evaluations = evaluations_;
  try {
    return execute_kind(statement);
  } catch (const TooManyOperations&) {
    too_many(statement.place);
  } catch (const UnknownNumber& unknown) {
    evaluations_ = evaluations;
    return execute_choices(statement, unknown);
  }
}

Expander::Flow Expander::execute_kind(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::none:
      break;
    case StatementKind::declare:
    case StatementKind::input:
    case StatementKind::output:
      declare_variable(statement);
      break;
    case StatementKind::alias:
      alias(statement);
      break;
    case StatementKind::assign:
      assign(statement);
      break;
    case StatementKind::expression:
      (void)evaluate(statement.values[0]);
      break;
    case StatementKind::gate_call:
      gate_call(statement);
      break;
    case StatementKind::gate:
    case StatementKind::opaque:
    case StatementKind::subroutine:
      fail(statement.place, "expected definitions outside of braces, found one inside; move it to the top");
    case StatementKind::measure:
      measure(statement);
      break;
    case StatementKind::reset:
      reset(statement);
      break;
    case StatementKind::barrier:
      barrier(statement);
      break;
    case StatementKind::delay:
      if (!statement.values.empty()) (void)evaluate(statement.values[0]);
      for (const Expression& one : statement.targets) (void)qubits_of(one);
      break;
    case StatementKind::if_else:
      return if_else(statement);
    case StatementKind::for_loop:
      return for_loop(statement);
    case StatementKind::while_loop:
      return while_loop(statement);
    case StatementKind::switch_case:
      return switch_case(statement);
    case StatementKind::block:
    case StatementKind::box:
      return execute_scope(statement.body);
    case StatementKind::break_loop:
    case StatementKind::continue_loop: {
      if (loops_.empty()) fail(statement.place, "expected a loop around break or continue, found none");
      const Loop& loop = loops_.back();
      const bool leaves = statement.kind == StatementKind::break_loop;
      return leave(leaves ? loop.leave : loop.next, loop.guards, loop.depth, leaves ? Flow::broken : Flow::continued);
    }
    case StatementKind::return_value:
      return return_value(statement);
    case StatementKind::end:
      return leave(0, 0, 0, Flow::ended);
    case StatementKind::include:
      include(statement);
      break;
  }
  return Flow::next;
}

Expander::Flow Expander::execute_all(const std::vector<Statement>& statements) {
  for (const Statement& one : statements) {
    if (++evaluations_ > deepest_evaluation) {
      fail(one.place, "statements or subroutines are nested too deeply; use fewer levels");
    }
    const Flow flow = execute(one);
    --evaluations_;
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Expander::Flow Expander::execute_scope(const std::vector<Statement>& statements) {
  scopes_.emplace_back();
  const Flow flow = execute_all(statements);
  scopes_.pop_back();
  return flow;
}

void Expander::include(const Statement& statement) {
  if (scopes_.size() > 1) fail(statement.place, "expected includes outside of braces, found one inside");
  const std::vector<std::string_view> library = library_gates(statement.name);
  if (library.empty()) {
    parser_.include(sources_.include(statement.name, statement.name_place));
    return;
  }
  for (const std::string_view name : library) define_library(name);
  if (const std::string_view text = library_text(statement.name); !text.empty()) {
    parser_.include(sources_.add(std::string(statement.name), std::string(text)));
  }
}

void Expander::declare_variable(const Statement& statement) {
  if (gate_body_ != nullptr) fail(statement.place, "expected gates in the body of a gate, found a declaration");
  const Type type = type_of(*statement.type);
  if (type.kind == TypeKind::qubit) return declare_register(statement, type, Kind::qubits);
  if (statement.kind == StatementKind::input) return declare_input(statement, type);
  const bool is_output = statement.kind == StatementKind::output;
  if (type.kind == TypeKind::bit && !type.is_array() && !statement.flag && scopes_.size() == 1) {
    return declare_register(statement, type, Kind::bits);
  }
  if (type.is_array()) {
    const auto elements = std::accumulate(type.dimensions.begin(), type.dimensions.end(), std::int64_t{1},
                                          std::multiplies<std::int64_t>());
    spend(statement.name_place, elements);
    if (scopes_.size() == 1) count_bytes(statement.name_place, static_cast<std::size_t>(elements) * sizeof(Value));
  }
  Variable made;
  made.type = type;
  made.constant = statement.flag;
  made.value = lasting(initial(statement.values, type, statement.name_place));
  if (type.is_array()) made.type = made.value.type;
  Variable& variable = declare(statement.name, statement.name_place, std::move(made));
  if (!is_output) return;
  variable.depth = 0;  // it outlives the program, so an `end` that depends on measurements keeps its value
  if (type.is_array() || type.kind == TypeKind::complex || type.kind == TypeKind::duration ||
      type.kind == TypeKind::real || (type.kind == TypeKind::angle && type.width == 0)) {
    fail(statement.place, "expected an output of bits, booleans, integers or angles of a size, found one of " +
                              type.text() + "; write the bits that it is made of");
  }
  outputs_.push_back(statement.name);
}

void Expander::declare_register(const Statement& statement, const Type& type, Kind kind) {
  const bool quantum = kind == Kind::qubits;
  if (scopes_.size() > 1)
    fail(statement.place, "expected qubits outside of braces, found some inside; move them to the top");
  if (quantum && hardware_) {
    fail(statement.place, "expected either declared qubits or physical qubits such as $0, found both");
  }
  const int size = statement.type->size.empty() ? 1 : type.width;
  const std::int64_t all = (quantum ? circuit_.qubits : circuit_.clbits) + std::int64_t{size};
  const int most = quantum ? most_qubits : most_bits;
  if (type.width < 0 || all > most) {
    const std::int64_t asked = statement.type->size.empty()
                                   ? 1
                                   : arithmetic_.integer(evaluate(statement.type->size[0]), statement.place, "a size");
    if (asked < 0) fail(statement.place, "expected a register of 0 bits or more, found " + std::to_string(asked));
    fail(statement.place, "expected registers of at most " + std::to_string(most) + (quantum ? " qubits" : " bits") +
                              " together, found " + std::to_string(all - size + asked) + " up to here");
  }
  Variable made;
  made.kind = kind;
  made.type = type;
  if (!statement.type->size.empty() && size == 0) made.type.width = -1;  // a register of no bits is no bit
  int& count = quantum ? circuit_.qubits : circuit_.clbits;
  made.places.resize(static_cast<std::size_t>(size));
  std::iota(made.places.begin(), made.places.end(), count);
  if (!quantum && !statement.type->size.empty())
    circuit_.registers.push_back({std::string(statement.name), count, size});
  count += size;
  fresh_.resize(static_cast<std::size_t>(circuit_.qubits), true);
  // A condition of OpenQASM 2 is always kept.
  known_bits_.resize(static_cast<std::size_t>(circuit_.clbits),
                     parser_.version() == 2 ? std::int8_t{-1} : std::int8_t{0});
  const Variable& variable = declare(statement.name, statement.name_place, std::move(made));
  if (statement.values.empty() || quantum) return;
  const std::vector<int> places = variable.places;
  if (statement.values[0].kind == ExpressionKind::measure) {
    measure_into(statement.values[0].parts[0], places, statement.values[0].place);
  } else {
    store(places, arithmetic_.cast(evaluate(statement.values[0]), type, statement.values[0].place).bits);
  }
}

void Expander::declare_input(const Statement& statement, const Type& type) {
  const bool real = type.kind == TypeKind::real || type.kind == TypeKind::angle;
  if (!real || type.is_array()) {
    fail(statement.place, "expected an input of the type float or angle, found one of " + type.text() +
                              "; write its value, as in `const " + type.text() + " " + std::string(statement.name) +
                              " = ...`");
  }
  Variable made;
  made.type.kind = type.kind;
  made.constant = true;
  made.value.type = made.type;
  made.value.real.inputs = {{static_cast<int>(circuit_.parameters.size()), 1.0}};
  declare(statement.name, statement.name_place, std::move(made));
  circuit_.parameters.emplace_back(statement.name);
}

void Expander::alias(const Statement& statement) {
  Variable made;
  bool single = true;
  const Expression& of = statement.values[0];
  if (places_of(of, Kind::qubits, made.places, single)) {
    made.kind = Kind::qubits;
  } else if (made.places.clear(); places_of(of, Kind::bits, made.places, single)) {
    made.kind = Kind::bits;
  }
  if (made.kind == Kind::value) {
    made.value = lasting(evaluate(of));
    made.type = made.value.type;
  } else {
    made.type = {made.kind == Kind::bits ? TypeKind::bit : TypeKind::qubit,
                 single ? 0 : static_cast<int>(made.places.size()),
                 {}};
  }
  declare(statement.name, statement.name_place, std::move(made));
}

// -- measurements and resets ------------------------------------------------------------------------------------------

void Expander::measure(const Statement& statement) {
  if (statement.targets.size() == 1) {
    (void)measured(statement.targets[0], statement.place);
    return;
  }
  (void)qubits_of(statement.targets[0]);
  std::vector<int> bits;
  bool single = true;
  if (places_of(statement.targets[1], Kind::bits, bits, single)) {
    measure_into(statement.targets[0], bits, statement.targets[1].place);
    return;
  }
  const Expression& target = statement.targets[1];
  const Expression& name = root_of(target);
  Variable& variable = declared(name.text, name.place);
  const Value value = measured(statement.targets[0], statement.place);
  if (target.kind == ExpressionKind::index) {
    set_indexed(variable, target, value);
  } else {
    set(variable, value, target.place);
  }
}

void Expander::measure_into(const Expression& qubits, const std::vector<int>& bits, Place place) {
  if (gate_body_ != nullptr) fail(place, "expected gates in the body of a gate, found a measurement");
  const std::vector<int> which = qubits_of(qubits);
  if (which.size() != bits.size()) {
    fail(place, "expected as many classical bits as qubits to measure, " + std::to_string(which.size()) + ", found " +
                    std::to_string(bits.size()));
  }
  std::vector<int> sorted = which;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) fail(qubits.place, "duplicate qubits; measure each once");
  for (std::size_t k = 0; k < which.size(); ++k) emit_measurement(which[k], bits[k], place);
}

void Expander::reset(const Statement& statement) {
  if (gate_body_ != nullptr) fail(statement.place, "expected gates in the body of a gate, found a reset");
  for (const Expression& one : statement.targets) {
    for (const int qubit : qubits_of(one)) {
      if (fresh_[static_cast<std::size_t>(qubit)]) continue;
      Operation made;
      made.kind = OperationKind::reset;
      made.name = "reset";
      made.targets = {qubit};
      made.condition = condition_;
      emit(std::move(made), statement.place);
    }
  }
}

void Expander::barrier(const Statement& statement) {
  Operation made;
  made.kind = OperationKind::barrier;
  made.name = "barrier";
  made.condition = condition_;
  for (const Expression& one : statement.targets) {
    for (const int qubit : qubits_of(one)) {
      if (std::ranges::find(made.targets, qubit) == made.targets.end()) made.targets.push_back(qubit);
    }
  }
  if (statement.targets.empty()) {
    if (gate_body_ != nullptr) return;
    made.targets.resize(static_cast<std::size_t>(circuit_.qubits));
    std::iota(made.targets.begin(), made.targets.end(), 0);
  }
  emit(std::move(made), statement.place);
}

}  // namespace onehop::quantum::language
