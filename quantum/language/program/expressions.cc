// Expressions, indices, and the qubits or bits that they name.
#include <algorithm>
#include <numeric>
#include <utility>

#include "quantum/language/program/expander.h"

namespace onehop::quantum::language {
namespace {

constexpr std::int64_t largest_array = 1 << 20;  // elements
constexpr int largest_width = 65536;

// The bits of a decimal number of any size, which may have underscores, the least significant first.
Bits bits_of_decimal(std::string_view digits) {
  std::vector<std::uint32_t> words;
  for (const char digit : digits) {
    if (digit == '_') continue;
    auto carry = static_cast<std::uint64_t>(digit - '0');
    for (std::uint32_t& word : words) {
      carry += std::uint64_t{10} * word;
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32U;
    }
    if (carry != 0) words.push_back(static_cast<std::uint32_t>(carry));
  }
  Bits bits;
  for (const std::uint32_t word : words) {
    for (unsigned k = 0; k < 32; ++k) bits.push_back((word >> k & 1U) != 0 ? one_bit : zero_bit);
  }
  return bits;
}

}  // namespace

Type Expander::type_of(const TypeName& name) {
  Type type;
  type.kind = name.kind;
  if (!name.size.empty()) {
    const std::int64_t width = arithmetic_.integer(evaluate(name.size[0]), name.size[0].place, "a size");
    const bool counted =
        type.kind == TypeKind::integer || type.kind == TypeKind::natural || type.kind == TypeKind::angle;
    if (width < 1 && type.kind != TypeKind::qubit && type.kind != TypeKind::bit) {
      fail(name.place, "expected a size of 1 bit or more, found " + std::to_string(width));
    }
    if (counted && width > 64) {
      fail(name.place, "expected numbers of at most 64 bits, found " + std::to_string(width));
    }
    type.width = counted || (width >= 0 && width <= largest_width) ? static_cast<int>(width) : largest_width + 1;
    if (type.kind == TypeKind::real || type.kind == TypeKind::boolean) type.width = 0;
  }
  std::int64_t elements = 1;
  for (const Expression& one : name.dimensions) {
    const std::int64_t size = arithmetic_.integer(evaluate(one), one.place, "a dimension");
    elements *= std::clamp<std::int64_t>(size, 0, largest_array + 1);
    if (elements < 1 || elements > largest_array) {
      fail(one.place, "expected an array of at most 1048576 elements, found another one");
    }
    type.dimensions.push_back(static_cast<int>(size));
  }
  return type;
}

Value Expander::value_of(const Variable& variable) const {
  if (variable.kind == Kind::value) return variable.value;
  Bits bits = variable.places;
  for (int& bit : bits) {
    const std::int8_t known = bit < first_hidden ? known_bits_[static_cast<std::size_t>(bit)] : std::int8_t{-1};
    if (known >= 0) bit = known != 0 ? one_bit : zero_bit;
  }
  return bits_value(std::move(bits), variable.type.width > 0);
}

Value Expander::evaluate(const Expression& expression) {
  if (++evaluations_ > deepest_evaluation) {
    fail(expression.place, "expressions or subroutines are nested too deeply; use fewer levels");
  }
  Value made;
  switch (expression.kind) {
    case ExpressionKind::integer:
      made = integer_value(expression.integer);
      break;
    case ExpressionKind::real:
      made = real_value(expression.number);
      break;
    case ExpressionKind::imaginary:
      made.type.kind = TypeKind::complex;
      made.complex = {0, expression.number};
      break;
    case ExpressionKind::duration:
      made = real_value(expression.number);
      made.type.kind = TypeKind::duration;
      break;
    case ExpressionKind::boolean:
      made = boolean_value(expression.integer != 0 ? one_bit : zero_bit);
      break;
    case ExpressionKind::bits: {
      Bits bits;
      if (expression.integer != 0) {
        bits = bits_of_decimal(expression.text);
      } else {
        for (const char c : expression.text) {
          if (c != '_') bits.push_back(c == '1' ? one_bit : zero_bit);
        }
        std::ranges::reverse(bits);  // the text has the most significant bit first
      }
      made = bits_value(std::move(bits));
      break;
    }
    case ExpressionKind::name:
      if (const Variable* const found = find(expression.text); found != nullptr) {
        if (found->kind == Kind::qubits) {
          fail(expression.place, "expected a value, found the qubits '" + std::string(expression.text) + "'");
        }
        made = value_of(*found);
      } else if (!Arithmetic::constant(expression.text, made)) {
        fail(expression.place, "'" + std::string(expression.text) + "' is not defined; declare it first");
      }
      break;
    case ExpressionKind::unary:
      made = arithmetic_.unary(expression.symbol, evaluate(expression.parts[0]), expression.place);
      break;
    case ExpressionKind::binary:
      if (expression.symbol == symbol("++")) {
        made = concatenation(expression);
      } else {
        const Value left = evaluate(expression.parts[0]);
        made = arithmetic_.binary(expression.symbol, left, evaluate(expression.parts[1]), expression.place);
      }
      break;
    case ExpressionKind::call:
      made = evaluate_call(expression);
      break;
    case ExpressionKind::cast:
      made = arithmetic_.cast(evaluate(expression.parts[0]), type_of(*expression.type), expression.place);
      break;
    case ExpressionKind::index:
      made = evaluate_index(expression);
      break;
    case ExpressionKind::measure:
      made = measured(expression.parts[0], expression.place);
      break;
    case ExpressionKind::hardware:
      fail(expression.place, "expected a value, found a qubit");
    case ExpressionKind::set:
    case ExpressionKind::range:
      fail(expression.place, "expected a single value, found several");
  }
  --evaluations_;
  return made;
}

Value Expander::evaluate_call(const Expression& expression) {
  if (const auto found = subroutines_.find(expression.text); found != subroutines_.end()) {
    std::vector<const Expression*> arguments;
    for (const Expression& one : expression.parts) arguments.push_back(&one);
    return call(*found->second, arguments, expression.place);
  }
  std::vector<Value> arguments;
  for (const Expression& one : expression.parts) arguments.push_back(evaluate(one));
  Value made;
  if (!arithmetic_.call(expression.text, arguments, expression.place, made)) {
    fail(expression.place, "'" + std::string(expression.text) +
                               "' is not defined; define it with `def`, or use a "
                               "function of OpenQASM");
  }
  return made;
}

Value Expander::concatenation(const Expression& expression) {
  const Value left = evaluate(expression.parts[0]);
  const Value right = evaluate(expression.parts[1]);
  if (left.has_bits() && right.has_bits() && !left.type.is_array()) {
    Bits bits = left.bits;
    bits.insert(bits.end(), right.bits.begin(), right.bits.end());
    return bits_value(std::move(bits));
  }
  if (!left.type.is_array() || !right.type.is_array()) {
    fail(expression.place, "expected two registers or two arrays beside ++, found other values");
  }
  Value made = left;
  made.elements.insert(made.elements.end(), right.elements.begin(), right.elements.end());
  made.type.dimensions[0] = static_cast<int>(made.elements.size());
  return made;
}

// The element of an array that the first indices of an expression name, so that the array is not copied; `next` becomes
// the index behind them. None if the expression has others, or a subroutine that may change the array.
const Value* Expander::element_of(const Expression& expression, std::size_t& next) {
  const Expression& root = expression.parts[0];
  const Variable* const array = root.kind == ExpressionKind::name ? find(root.text) : nullptr;
  if (array == nullptr || array->kind != Kind::value || has_call(expression)) return nullptr;
  const Value* element = &array->value;
  for (; next < expression.parts.size() && element->type.is_array(); ++next) {
    const Expression& at = expression.parts[next];
    if (at.kind == ExpressionKind::range || at.kind == ExpressionKind::set) break;
    bool single = true;
    element = &element->elements[static_cast<std::size_t>(indices(at, element->type.dimensions[0], single)[0])];
  }
  return element;
}

Value Expander::evaluate_index(const Expression& expression) {
  const int evaluations = evaluations_;
  try {
    return element(expression);
  } catch (const UnknownNumber& unknown) {
    evaluations_ = evaluations;
    return chosen_element(expression, unknown);
  }
}

Value Expander::element(const Expression& expression) {
  std::vector<int> places;
  bool single = true;
  if (places_of(expression, Kind::bits, places, single)) {
    Variable bits;
    bits.kind = Kind::bits;
    bits.places = std::move(places);
    bits.type = {TypeKind::bit, single ? 0 : 1, {}};
    return value_of(bits);
  }
  std::size_t next = 1;
  const Value* const element = element_of(expression, next);
  Value of = element != nullptr ? *element : evaluate(expression.parts[0]);
  for (std::size_t k = next; k < expression.parts.size(); ++k) {
    const Expression& at = expression.parts[k];
    const bool is_array = of.type.is_array();
    if (!is_array && !of.is_integral())
      fail(at.place, "expected an index of an array or of bits, found " + of.type.text());
    const std::int64_t size = is_array ? of.type.dimensions[0] : of.type.bits();
    bool one = true;
    const std::vector<int> found = indices(at, size, one);
    if (is_array && one) {
      Value element = std::move(of.elements[static_cast<std::size_t>(found[0])]);
      of = std::move(element);
    } else if (is_array) {
      Value part;
      part.type = of.type;
      part.type.dimensions[0] = static_cast<int>(found.size());
      for (const int i : found) part.elements.push_back(of.elements[static_cast<std::size_t>(i)]);
      of = std::move(part);
    } else {
      const Bits all = bits_of(of, of.type.bits());
      Bits bits;
      for (const int i : found) bits.push_back(all[static_cast<std::size_t>(i)]);
      of = bits_value(std::move(bits), !one);
    }
  }
  return of;
}

std::vector<std::int64_t> Expander::range(const Expression& expression, std::int64_t size) {
  const auto part = [&](std::size_t k, std::int64_t missing) {
    if ((expression.integer >> k & 1) == 0) return missing;
    return number_of(expression.parts[k], "a number in the range", size);
  };
  const std::int64_t step = part(1, 1);
  if (step == 0) fail(expression.place, "expected a step other than 0 in the range, found 0");
  std::int64_t start = part(0, step > 0 ? 0 : size - 1);
  std::int64_t end = part(2, step > 0 ? size - 1 : 0);
  if (size >= 0) {
    start = start < 0 ? start + size : start;
    end = end < 0 ? end + size : end;
  }
  std::vector<std::int64_t> found;
  if (step > 0 ? start > end : start < end) return found;
  const auto distance = step > 0 ? static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(start)
                                 : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(end);
  const std::uint64_t width = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t count = distance / width + 1;
  spend(expression.place,
        count == 0 || count > (std::uint64_t{1} << 62) ? std::int64_t{1} << 62 : static_cast<std::int64_t>(count));
  found.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t k = 0; k < count; ++k) found.push_back(start + static_cast<std::int64_t>(k) * step);
  return found;
}

std::vector<int> Expander::indices(const Expression& expression, std::int64_t size, bool& single) {
  std::vector<std::int64_t> asked;
  single = false;
  if (expression.kind == ExpressionKind::range) {
    asked = range(expression, size);
  } else if (expression.kind == ExpressionKind::set) {
    for (const Expression& one : expression.parts) asked.push_back(number_of(one, "an index", size));
  } else {
    single = true;
    asked.push_back(number_of(expression, "an index", size));
  }
  std::vector<int> found;
  for (const std::int64_t one : asked) {
    const std::int64_t index = one < 0 ? one + size : one;
    if (index < 0 || index >= size) {
      fail(expression.place,
           "index " + std::to_string(one) + " is out of range; the register or array has " + std::to_string(size));
    }
    found.push_back(static_cast<int>(index));
  }
  return found;
}

bool Expander::places_of(const Expression& expression, Kind kind, std::vector<int>& places, bool& single) {
  if (expression.kind == ExpressionKind::name) {
    const Variable* const found = find(expression.text);
    if (found == nullptr || found->kind != kind) return false;
    places = found->places;
    single = found->type.width == 0;
    return true;
  }
  if (expression.kind == ExpressionKind::binary && expression.symbol == symbol("++")) {
    std::vector<int> more;
    if (!places_of(expression.parts[0], kind, places, single) || !places_of(expression.parts[1], kind, more, single)) {
      return false;
    }
    places.insert(places.end(), more.begin(), more.end());
    single = false;
    return true;
  }
  const Expression* const root = expression.kind == ExpressionKind::index ? &expression.parts[0] : nullptr;
  if (root != nullptr && root->kind == ExpressionKind::name && expression.parts.size() == 2) {  // without a copy of all
    const Variable* const found = find(root->text);
    if (found == nullptr || found->kind != kind) return false;
    for (const int k : indices(expression.parts[1], static_cast<std::int64_t>(found->places.size()), single)) {
      places.push_back(found->places[static_cast<std::size_t>(k)]);
    }
    return true;
  }
  if (expression.kind != ExpressionKind::index || !places_of(expression.parts[0], kind, places, single)) return false;
  if (expression.parts.size() > 2) fail(expression.parts[2].place, "expected one index of a register, found more");
  const std::vector<int> at = indices(expression.parts[1], static_cast<std::int64_t>(places.size()), single);
  std::vector<int> chosen;
  for (const int k : at) chosen.push_back(places[static_cast<std::size_t>(k)]);
  places = std::move(chosen);
  return true;
}

std::vector<int> Expander::qubits_of(const Expression& expression) {
  if (expression.kind == ExpressionKind::hardware) {
    if (!hardware_ && circuit_.qubits > 0) {
      fail(expression.place, "expected either declared qubits or physical qubits such as $0, found both");
    }
    if (expression.integer >= most_qubits) {
      fail(expression.place, "expected physical qubits below $" + std::to_string(most_qubits) + ", found another one");
    }
    hardware_ = true;
    circuit_.qubits = std::max(circuit_.qubits, static_cast<int>(expression.integer) + 1);
    fresh_.resize(static_cast<std::size_t>(circuit_.qubits), true);
    return {static_cast<int>(expression.integer)};
  }
  std::vector<int> found;
  bool single = true;
  if (places_of(expression, Kind::qubits, found, single)) return found;
  const Expression& name = root_of(expression);
  if (name.kind == ExpressionKind::name && find(name.text) == nullptr) {
    fail(name.place, "'" + std::string(name.text) + "' is not defined; declare its qubits first");
  }
  fail(expression.place, "expected qubits, found a value");
}

Linear Expander::angle_of(const Expression& expression) {
  return arithmetic_.linear(evaluate(expression), expression.place);
}

Value Expander::measured(const Expression& operand, Place place) {
  const std::vector<int> qubits = qubits_of(operand);
  Bits bits;
  for (std::size_t k = 0; k < qubits.size(); ++k) bits.push_back(logic_.new_bit());
  measure_into(operand, bits, place);
  const bool single = operand.kind != ExpressionKind::name || qubits.size() == 1;
  return bits_value(std::move(bits), !single || qubits.size() != 1);
}

}  // namespace onehop::quantum::language
