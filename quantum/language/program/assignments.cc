// Assignments to variables and to classical bits, also where they depend on measurements.
#include <algorithm>
#include <utility>

#include "quantum/language/program/expander.h"

namespace onehop::quantum::language {

void Expander::assign(const Statement& statement) {
  if (gate_body_ != nullptr) fail(statement.place, "expected gates in the body of a gate, found an assignment");
  const Expression& target = statement.targets[0];
  const Expression& name = root_of(target);
  if (name.kind != ExpressionKind::name) fail(target.place, "expected a variable before the assignment");
  const Expression& source = statement.values[0];
  std::vector<int> places;
  bool single = true;
  const bool is_bits = places_of(target, Kind::bits, places, single);
  if (is_bits && statement.symbol == 0 && source.kind == ExpressionKind::measure) {
    return measure_into(source.parts[0], places, statement.place);
  }
  Value value = source.kind == ExpressionKind::set ? Value() : evaluate(source);
  if (statement.symbol != 0) {
    value = arithmetic_.binary(statement.symbol, evaluate(target), value, statement.place);
  }
  Variable& variable = declared(name.text, name.place);
  if (is_bits) {
    const Type type{TypeKind::bit, single ? 0 : static_cast<int>(places.size()), {}};
    return store(places, arithmetic_.cast(value, type, source.place).bits);
  }
  if (source.kind == ExpressionKind::set) {
    value = array_of(source, target.kind == ExpressionKind::index ? evaluate(target).type : variable.type, 0);
  }
  if (target.kind == ExpressionKind::index) {
    set_indexed(variable, target, value);
  } else {
    set(variable, std::move(value), statement.place);
  }
}

void Expander::set(Variable& variable, Value value, Place place) {
  if (variable.kind == Kind::qubits) fail(place, "expected a classical variable, found qubits");
  if (variable.constant) fail(place, "expected a variable, found a constant or an input, which cannot change");
  if (variable.kind == Kind::bits) {
    return store(variable.places, arithmetic_.cast(value, variable.type, place).bits);
  }
  if (!value.type.is_array() || value.type.dimensions != variable.type.dimensions) {
    value = arithmetic_.cast(value, variable.type, place);
  }
  const int holds = guards_.empty() ? one_bit : guard_bit(variable.depth);
  variable.value = lasting(mixed(holds, value, variable.value, place));
}

void Expander::set_indexed(Variable& variable, const Expression& target, const Value& value) {
  if (variable.kind == Kind::qubits) fail(target.place, "expected a classical variable, found qubits");
  if (variable.constant) fail(target.place, "expected a variable, found a constant or an input, which cannot change");
  std::vector<const Expression*> at;
  for (const Expression* one = &target; one->kind == ExpressionKind::index; one = &one->parts[0]) {
    for (std::size_t k = one->parts.size() - 1; k > 0; --k) at.insert(at.begin(), &one->parts[k]);
  }
  const int holds = guards_.empty() ? one_bit : guard_bit(variable.depth);
  // A subroutine in an index may change the variable, so that its elements are elsewhere.
  if (holds == one_bit && !has_call(target)) return set_element(variable.value, at, 0, value);
  Value changed = variable.value;
  set_element(changed, at, 0, value);
  variable.value = lasting(mixed(holds, changed, variable.value, target.place));
}

// Sets the part of an array, or the bits of a number, that the indices from `level` on name.
void Expander::set_element(Value& of, const std::vector<const Expression*>& at, std::size_t level, const Value& value) {
  if (level == at.size()) {
    const Place place = at.back()->place;
    const bool same = value.type.is_array() && value.type.dimensions == of.type.dimensions;
    of = lasting(same ? value : arithmetic_.cast(value, of.type, place));
    return;
  }
  const Expression& index = *at[level];
  if (!of.type.is_array() && !of.is_integral()) {
    fail(index.place, "expected an index of an array or of bits, found one of " + of.type.text());
  }
  bool single = true;
  const std::vector<int> found = indices(index, of.type.is_array() ? of.type.dimensions[0] : of.type.bits(), single);
  if (of.type.is_array()) {
    for (std::size_t k = 0; k < found.size(); ++k) {
      const bool parts = !single && value.type.is_array() && value.elements.size() == found.size();
      set_element(of.elements[static_cast<std::size_t>(found[k])], at, level + 1, parts ? value.elements[k] : value);
    }
    return;
  }
  const Type type{TypeKind::bit, single ? 0 : static_cast<int>(found.size()), {}};
  const Value bits = lasting(arithmetic_.cast(value, type, index.place));
  Value changed = bits_value(bits_of(of, of.type.bits()), of.type.width > 0);
  for (std::size_t k = 0; k < found.size(); ++k) changed.bits[static_cast<std::size_t>(found[k])] = bits.bits[k];
  of = arithmetic_.cast(changed, of.type, index.place);
}

// One of two values of the same type, by a bit.
Value Expander::mixed(int condition, const Value& yes, const Value& no, Place place) {
  if (condition == one_bit) return yes;
  if (condition == zero_bit) return no;
  Value made = yes;
  if (yes.type.is_array()) {
    for (std::size_t k = 0; k < yes.elements.size(); ++k) {
      made.elements[k] = mixed(condition, yes.elements[k], no.elements[k], place);
    }
    return made;
  }
  if (yes.is_real()) {
    Linear change = yes.real;
    change.add(no.real, -1);
    if (!change.is_constant()) {
      fail(place, "expected to change a number by one that is known before the run where it depends on measurements");
    }
    made.real = no.real;
    Linear bit;
    bit.bits = {{condition, 1.0}};
    made.real.add(bit, change.constant);
    return made;
  }
  if (!yes.is_integral()) {
    if (yes.complex == no.complex) return yes;
    fail(place,
         "expected a bit, an integer or a real number to depend on measurements, found one of " + yes.type.text());
  }
  const int width = yes.type.bits();
  const Bits a = bits_of(yes, width);
  const Bits b = bits_of(no, width);
  Bits bits;
  for (std::size_t k = 0; k < a.size(); ++k) bits.push_back(logic_.choice(condition, a[k], b[k]));
  return arithmetic_.cast(bits_value(std::move(bits), yes.type.width > 0 || width > 1), yes.type, place);
}

// Copies classical bits of the circuit, which may change, to hidden bits.
Value Expander::lasting(Value value) {
  const auto keep = [this](int& bit) {
    if (bit >= 0 && bit < first_hidden) bit = logic_.assign({{bit}, 1});
  };
  for (int& bit : value.bits) keep(bit);
  for (auto& term : value.real.bits) keep(term.first);
  for (Value& one : value.elements) one = lasting(std::move(one));
  return value;
}

// Sets classical bits of the circuit.
void Expander::store(const std::vector<int>& places, const Bits& bits) {
  Bits sources = bits;
  for (int& source : sources) {  // a bit that is itself a target may change before it is read
    if (source >= 0 && std::ranges::find(places, source) != places.end()) source = logic_.assign({{source}, 1});
  }
  for (std::size_t k = 0; k < places.size(); ++k) {
    const int place = places[k];
    std::int8_t& known = known_bits_[static_cast<std::size_t>(place)];
    if (known >= 0 && sources[k] == (known != 0 ? one_bit : zero_bit)) continue;
    write_guarded_bit(place);
    int source = sources[k];
    if (!guards_.empty()) source = logic_.choice(guard_bit(0), source, place);
    if (source == place) continue;
    logic_.copy(place, source);
    known = source == one_bit ? 1 : source == zero_bit ? 0 : -1;
  }
}

Value Expander::array_of(const Expression& expression, const Type& type, std::size_t level) {
  if (expression.kind != ExpressionKind::set) {
    Value value = evaluate(expression);
    if (level < type.dimensions.size()) {
      fail(expression.place, "expected the elements of an array in braces, found a single value");
    }
    return arithmetic_.cast(value, {type.kind, type.width, {}}, expression.place);
  }
  Value made;
  made.type = {
      type.kind, type.width, {type.dimensions.begin() + static_cast<std::ptrdiff_t>(level), type.dimensions.end()}};
  const std::size_t wanted = level < type.dimensions.size() ? static_cast<std::size_t>(type.dimensions[level]) : 0;
  if (expression.parts.size() != wanted) {
    fail(expression.place, "expected an array of " + std::to_string(wanted) + " elements, found " +
                               std::to_string(expression.parts.size()));
  }
  for (const Expression& one : expression.parts) made.elements.push_back(array_of(one, type, level + 1));
  return made;
}

// The first value of a variable; without one, 0.
Value Expander::initial(const std::vector<Expression>& values, const Type& type, Place place) {
  if (!values.empty() && values[0].kind == ExpressionKind::set) return array_of(values[0], type, 0);
  if (!values.empty()) {
    Value value = evaluate(values[0]);
    if (type.is_array() && value.type.dimensions == type.dimensions && value.type.kind == type.kind) return value;
    return arithmetic_.cast(value, type, values[0].place);
  }
  if (!type.is_array()) {
    if (type.kind != TypeKind::duration) return arithmetic_.cast(integer_value(0), type, place);
    Value none = real_value(0);
    none.type = type;
    return none;
  }
  Value made;
  made.type = type;
  Type element = type;
  element.dimensions.erase(element.dimensions.begin());
  made.elements.assign(static_cast<std::size_t>(type.dimensions[0]), initial({}, element, place));
  return made;
}

}  // namespace onehop::quantum::language
