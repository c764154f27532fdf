#include "quantum/language/values/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace onehop::quantum::language {
namespace {

bool is_sized_angle(const Value& value) { return value.type.kind == TypeKind::angle && value.type.width > 0; }

// The number of a known integral value; registers of more than 64 bits are not asked for.
std::int64_t number_of(const Value& value) {
  if (!value.has_bits()) return value.integer;
  std::int64_t number = 0;
  for (std::size_t k = 0; k < value.bits.size() && k < 64; ++k) {
    if (value.bits[k] == one_bit) number |= static_cast<std::int64_t>(std::uint64_t{1} << k);
  }
  return number;
}

bool is_known(const Value& value) { return value.has_bits() ? is_constant(value.bits) : value.known; }

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::uint64_t result = 1;
  auto factor = static_cast<std::uint64_t>(base);
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<std::int64_t>(result);
}

std::int64_t wrapping(Symbol operation, std::int64_t left, std::int64_t right) {
  const auto a = static_cast<std::uint64_t>(left);
  const auto b = static_cast<std::uint64_t>(right);
  switch (operation) {
    case symbol("+"):
      return static_cast<std::int64_t>(a + b);
    case symbol("-"):
      return static_cast<std::int64_t>(a - b);
    default:
      return static_cast<std::int64_t>(a * b);
  }
}

// The type of a result: that of the operand that says more.
Type common(const Value& left, const Value& right) {
  const auto is_number = [](const Value& one) {
    return one.type.kind == TypeKind::integer || one.type.kind == TypeKind::natural;
  };
  Type type;
  const bool natural = (left.type.kind == TypeKind::natural && !is_number(right)) ||
                       (right.type.kind == TypeKind::natural && !is_number(left)) ||
                       (left.type.kind == TypeKind::natural && right.type.kind == TypeKind::natural) ||
                       (!is_number(left) && !is_number(right) && left.has_bits() && right.has_bits());
  type.kind = natural ? TypeKind::natural : TypeKind::integer;
  const int left_bits = left.type.bits();
  const int right_bits = right.type.bits();
  type.width = std::max(left_bits, right_bits);
  if (type.width >= default_width) type.width = type.width == default_width ? 0 : type.width;
  return type;
}

}  // namespace

Value Arithmetic::made_of(Bits bits, const Type& type) const {
  if (type.kind == TypeKind::bit) return bits_value(std::move(bits), type.width > 0);
  if (type.kind == TypeKind::boolean) return boolean_value(bits[0]);
  Value made;
  made.type = type;
  made.known = is_constant(bits);
  if (made.known) {
    Value number = bits_value(std::move(bits));
    made.integer = wrapped(number_of(number), type);
  } else {
    made.bits = std::move(bits);
  }
  return made;
}

int Arithmetic::truth(const Value& value, Place place) {
  if (value.is_integral()) {
    if (value.has_bits() || !value.known) return logic_.any_of(value.bits);
    return value.integer != 0 ? one_bit : zero_bit;
  }
  if (value.is_real() && value.real.is_constant()) return value.real.constant != 0 ? one_bit : zero_bit;
  fail(place, "expected a condition of bits, integers or booleans, found a value of the type " + value.type.text());
}

std::int64_t Arithmetic::integer(const Value& value, Place place, const char* what) const {
  if (value.is_integral() && is_known(value)) return number_of(value);
  if (value.is_real() && value.real.is_constant() && std::abs(value.real.constant) < 0x1p62 &&
      std::trunc(value.real.constant) == value.real.constant) {
    return static_cast<std::int64_t>(value.real.constant);
  }
  if (value.is_integral()) {
    fail(place, std::string("expected ") + what +
                    " that is known before the run, found one that depends on "
                    "measurements; write an if or a switch statement for its values");
  }
  fail(place, std::string("expected ") + what + ", found a value of the type " + value.type.text());
}

double Arithmetic::real(const Value& value, Place place, const char* what) const {
  const Linear found = linear(value, place);
  if (found.is_constant()) return found.constant;
  fail(place, std::string("expected ") + what + " that is known before the run, found one that depends on " +
                  (found.inputs.empty() ? "measurements" : "an input"));
}

Linear Arithmetic::linear(const Value& value, Place place) const {
  if (value.is_real()) return value.real;
  if (!value.is_integral()) fail(place, "expected a real number, found a value of the type " + value.type.text());
  const double unit = is_sized_angle(value) ? turn / std::ldexp(1.0, value.type.width) : 1;
  Linear found;
  if (is_known(value)) {
    const std::int64_t number = number_of(value);
    const bool large = value.type.kind == TypeKind::natural && number < 0;
    found.constant =
        unit * (large ? static_cast<double>(static_cast<std::uint64_t>(number)) : static_cast<double>(number));
    return found;
  }
  for (std::size_t k = 0; k < value.bits.size(); ++k) {
    const bool sign = value.type.kind == TypeKind::integer && k + 1 == value.bits.size();
    const double weight = std::ldexp(sign ? -unit : unit, static_cast<int>(k));
    Linear bit;
    if (value.bits[k] == one_bit) bit.constant = weight;
    if (value.bits[k] >= 0) bit.bits = {{value.bits[k], weight}};
    found.add(bit, 1);
  }
  return found;
}

std::complex<double> Arithmetic::complex(const Value& value, Place place) const {
  if (value.type.kind == TypeKind::complex) return value.complex;
  return real(value, place, "a number");
}

Value Arithmetic::unary(Symbol operation, const Value& of, Place place) {
  if (operation == symbol("!")) return boolean_value(logic_.negation(truth(of, place)));
  if (operation == symbol("-")) {
    if (of.type.kind == TypeKind::complex) {
      Value made = of;
      made.complex = -of.complex;
      return made;
    }
    if (of.is_real()) {
      Value made = of;
      made.real.scale(-1);
      return made;
    }
    return binary(operation, integer_value(0), of, place);
  }
  if (!of.is_integral())
    fail(place, "expected bits or an integer behind ~, found a value of the type " + of.type.text());
  if (of.type.kind != TypeKind::bit && of.known) {
    Value made = of;
    made.integer = wrapped(of.type.kind == TypeKind::boolean ? of.integer ^ 1 : ~of.integer, of.type);
    made.bits.clear();
    return of.type.kind == TypeKind::boolean ? boolean_value(of.integer != 0 ? zero_bit : one_bit) : made;
  }
  Bits opposite;
  for (const int bit : of.bits) opposite.push_back(logic_.negation(bit));
  return made_of(std::move(opposite), of.type);
}

Value Arithmetic::binary(Symbol operation, const Value& left, const Value& right, Place place) {
  if (left.type.is_array() || right.type.is_array()) {
    fail(place, "expected single values beside " + spelled(operation) + ", found an array; write its elements");
  }
  switch (operation) {
    case symbol("&&"):
      return boolean_value(logic_.both(truth(left, place), truth(right, place)));
    case symbol("||"):
      return boolean_value(logic_.either(truth(left, place), truth(right, place)));
    case symbol("=="):
    case symbol("!="):
    case symbol("<"):
    case symbol("<="):
    case symbol(">"):
    case symbol(">="):
      return compare(operation, left, right, place);
    case symbol("&"):
    case symbol("|"):
    case symbol("^"):
      return bitwise(operation, left, right, place);
    case symbol("<<"):
    case symbol(">>"):
      return shift(operation, left, right, place);
    default:
      break;
  }
  if (left.type.kind == TypeKind::complex || right.type.kind == TypeKind::complex) {
    return complex_arithmetic(operation, left, right, place);
  }
  const bool integral = left.is_integral() && right.is_integral();
  const bool real_division = version_ == 2 && (operation == symbol("/") || operation == symbol("**"));
  const bool root = operation == symbol("**") && integral && is_known(right) && number_of(right) < 0;
  const bool mixed_angles = integral && is_sized_angle(left) && is_sized_angle(right) && left.type != right.type;
  const bool turned = integral && is_sized_angle(right) && operation == symbol("/") && !is_sized_angle(left);
  if (!integral || real_division || root || mixed_angles || turned) {
    return real_arithmetic(operation, left, right, place);
  }
  return integer_arithmetic(operation, left, right, place);
}

Value Arithmetic::compare(Symbol operation, const Value& left, const Value& right, Place place) {
  const bool equality = operation == symbol("==") || operation == symbol("!=");
  if (left.type.kind == TypeKind::complex || right.type.kind == TypeKind::complex) {
    if (!equality) fail(place, "expected == or != between complex numbers, found " + spelled(operation));
    return boolean_value((complex(left, place) == complex(right, place)) == (operation == symbol("==")) ? one_bit
                                                                                                        : zero_bit);
  }
  const auto answer = [&](auto a, auto b) {
    const bool found = operation == symbol("==")   ? a == b
                       : operation == symbol("!=") ? a != b
                       : operation == symbol("<")  ? a < b
                       : operation == symbol("<=") ? a <= b
                       : operation == symbol(">")  ? a > b
                                                   : a >= b;
    return boolean_value(found ? one_bit : zero_bit);
  };
  const bool wide = left.is_integral() && right.is_integral() && std::max(left.type.bits(), right.type.bits()) > 64;
  if (!left.is_integral() || !right.is_integral() || (is_sized_angle(left) != is_sized_angle(right))) {
    return answer(real(left, place, "a number"), real(right, place, "a number"));
  }
  if (is_known(left) && is_known(right) && !wide) {
    const std::int64_t a = number_of(left);
    const std::int64_t b = number_of(right);
    const bool a_is_large = left.type.kind != TypeKind::integer && a < 0;  // 2^63 or more
    const bool b_is_large = right.type.kind != TypeKind::integer && b < 0;
    if (a_is_large != b_is_large) return answer(a_is_large ? 1 : 0, b_is_large ? 1 : 0);
    return answer(a, b);
  }
  const bool is_signed = left.type.kind == TypeKind::integer || right.type.kind == TypeKind::integer;
  const int width = std::max(left.type.bits(), right.type.bits()) + (is_signed ? 1 : 0);
  Bits a = bits_of(left, width);
  Bits b = bits_of(right, width);
  if (equality) {
    const int same = logic_.equal(a, b);
    return boolean_value(operation == symbol("==") ? same : logic_.negation(same));
  }
  if (is_signed) {
    a.back() = logic_.negation(a.back());
    b.back() = logic_.negation(b.back());
  }
  if (operation == symbol("<")) return boolean_value(logic_.less(a, b));
  if (operation == symbol(">")) return boolean_value(logic_.less(b, a));
  return boolean_value(logic_.negation(operation == symbol("<=") ? logic_.less(b, a) : logic_.less(a, b)));
}

Value Arithmetic::bitwise(Symbol operation, const Value& left, const Value& right, Place place) {
  if (!left.is_integral() || !right.is_integral()) {
    fail(place, "expected bits or integers beside " + spelled(operation) + ", found values of the types " +
                    left.type.text() + " and " + right.type.text());
  }
  const bool booleans = left.type.bits() == 1 && right.type.bits() == 1 && !left.has_bits();
  Type type = left.has_bits() || is_sized_angle(left) ? left.type : common(left, right);
  if (!left.has_bits() && (right.has_bits() || is_sized_angle(right))) type = right.type;
  if (booleans) type = {TypeKind::boolean, 0, {}};
  type.width = left.has_bits() && right.has_bits() ? std::max(left.type.width, right.type.width) : type.width;
  const int width = type.bits();
  const Bits a = bits_of(left, width);
  const Bits b = bits_of(right, width);
  Bits found;
  for (std::size_t k = 0; k < a.size(); ++k) {
    found.push_back(operation == symbol("&")   ? logic_.both(a[k], b[k])
                    : operation == symbol("|") ? logic_.either(a[k], b[k])
                                               : logic_.different(a[k], b[k]));
  }
  return made_of(std::move(found), type);
}

Value Arithmetic::shift(Symbol operation, const Value& left, const Value& right, Place place) {
  if (!left.is_integral()) fail(place, "expected bits or an integer before " + spelled(operation));
  const int width = left.type.bits();
  Bits bits = bits_of(left, width);
  const int fill = operation == symbol(">>") && left.type.kind == TypeKind::integer ? bits.back() : zero_bit;
  const auto shifted = [&](std::int64_t asked) {
    const auto by = std::min<std::int64_t>(asked, width);
    Bits moved(static_cast<std::size_t>(by), fill);
    if (operation == symbol("<<")) {
      moved.insert(moved.end(), bits.begin(), bits.end() - by);
    } else {
      moved.insert(moved.begin(), bits.begin() + by, bits.end());
    }
    return moved;
  };
  if (!right.is_integral() || is_known(right)) {
    const std::int64_t asked = integer(right, place, "a number of bits to shift by");
    if (asked < 0) fail(place, "expected to shift by 0 bits or more, found " + std::to_string(asked));
    return made_of(shifted(asked), left.type);
  }
  if (right.type.kind == TypeKind::integer) {
    fail(place, "expected a uint or bits as the number of bits to shift by, found a measured " + right.type.text());
  }
  for (std::size_t k = 0; k < right.bits.size(); ++k) {
    const Bits moved = shifted(k < 32 ? std::int64_t{1} << k : width);
    for (std::size_t j = 0; j < bits.size(); ++j) bits[j] = logic_.choice(right.bits[k], moved[j], bits[j]);
  }
  return made_of(std::move(bits), left.type);
}

Value Arithmetic::integer_arithmetic(Symbol operation, const Value& left, const Value& right, Place place) {
  Type type = common(left, right);
  if (is_sized_angle(left)) type = left.type;
  if (is_sized_angle(right)) type = right.type;
  const bool ratio = is_sized_angle(left) && is_sized_angle(right) && operation == symbol("/");
  if (ratio) type = {TypeKind::natural, left.type.width, {}};
  if (!is_known(left) || !is_known(right)) return unknown_arithmetic(operation, left, right, type, place);
  const std::int64_t a = number_of(left);
  const std::int64_t b = number_of(right);
  if (operation == symbol("**")) return integer_value(wrapped(power(a, b), type), type.kind, type.width);
  if (operation != symbol("/") && operation != symbol("%")) {
    return integer_value(wrapped(wrapping(operation, a, b), type), type.kind, type.width);
  }
  if (b == 0) fail(place, "expected a number, found a division by zero");
  if (left.type.kind != TypeKind::integer && (right.type.kind != TypeKind::integer || b > 0)) {
    const auto dividend = static_cast<std::uint64_t>(a);
    const auto divisor = static_cast<std::uint64_t>(b);
    const std::uint64_t found = operation == symbol("/") ? dividend / divisor : dividend % divisor;
    if (type.kind == TypeKind::integer) type.kind = TypeKind::natural;
    return integer_value(static_cast<std::int64_t>(found), type.kind, type.width);
  }
  if (b == -1) {
    const std::int64_t negative = wrapping(symbol("-"), 0, a);
    return integer_value(operation == symbol("/") ? wrapped(negative, type) : 0, type.kind, type.width);
  }
  return integer_value(operation == symbol("/") ? a / b : a % b, type.kind, type.width);
}

Value Arithmetic::unknown_arithmetic(Symbol operation, const Value& left, const Value& right, const Type& type,
                                     Place place) {
  const int width = type.bits();
  const Bits a = bits_of(left, width);
  const Bits b = bits_of(right, width);
  if (operation == symbol("+")) return made_of(logic_.sum(a, b), type);
  if (operation == symbol("-")) return made_of(logic_.difference(a, b), type);
  if (operation == symbol("*")) return made_of(logic_.product(a, b), type);
  if (operation != symbol("**")) return unknown_division(operation, left, right, type, place);
  fail(place, "expected numbers that are known before the run beside **, found one that depends on measurements");
}

Value Arithmetic::unknown_division(Symbol operation, const Value& left, const Value& right, const Type& type,
                                   Place place) {
  const int width = type.bits();
  const Bits a = bits_of(left, width);
  const Bits b = bits_of(right, width);
  const int minus = left.type.kind == TypeKind::integer ? a.back() : zero_bit;
  const int other_minus = right.type.kind == TypeKind::integer ? b.back() : zero_bit;
  const auto divisor = is_known(right) ? static_cast<std::uint64_t>(number_of(right)) : 0;
  if (is_known(right) && divisor == 0) fail(place, "expected a number, found a division by zero");
  if (minus == zero_bit && other_minus == zero_bit && std::has_single_bit(divisor)) {
    const int by = std::countr_zero(divisor);
    if (operation == symbol("/")) return shift(symbol(">>"), made_of(a, type), integer_value(by), place);
    Bits low(a.begin(), a.begin() + std::min(by, width));
    low.resize(static_cast<std::size_t>(width), zero_bit);
    return made_of(std::move(low), type);
  }
  Bits rest;
  Bits found = logic_.quotient(logic_.turned(a, minus), logic_.turned(b, other_minus), rest);
  if (operation == symbol("%")) return made_of(logic_.turned(rest, minus), type);
  return made_of(logic_.turned(found, logic_.different(minus, other_minus)), type);
}

Value Arithmetic::real_arithmetic(Symbol operation, const Value& left, const Value& right, Place place) {
  const Linear b = linear(right, place);
  Value made;
  made.real = linear(left, place);
  const bool angles = left.type.kind == TypeKind::angle || right.type.kind == TypeKind::angle;
  const bool reals = left.type.kind == TypeKind::real || right.type.kind == TypeKind::real;
  const bool durations = left.type.kind == TypeKind::duration || right.type.kind == TypeKind::duration;
  const bool both = left.type.kind == right.type.kind;
  made.type.kind = durations ? TypeKind::duration : angles && !reals ? TypeKind::angle : TypeKind::real;
  if (both && operation == symbol("/")) made.type.kind = TypeKind::real;
  if (operation == symbol("+") || operation == symbol("-")) {
    made.real.add(b, operation == symbol("+") ? 1 : -1);
    return made;
  }
  if (operation == symbol("*") && (b.is_constant() || made.real.is_constant())) {
    Linear of = b.is_constant() ? made.real : b;
    of.scale(b.is_constant() ? b.constant : made.real.constant);
    made.real = std::move(of);
    return made;
  }
  if (operation == symbol("/") && b.is_constant()) {
    if (b.constant == 0) fail(place, "expected a number, found a division by zero");
    if (made.real.is_constant()) {
      made.real.constant /= b.constant;
    } else {
      made.real.scale(1 / b.constant);
    }
    return made;
  }
  if (!made.real.is_constant() || !b.is_constant()) {
    fail(place, "expected a linear expression of inputs and measured bits, found " + spelled(operation) +
                    " of them; compute the value before the run");
  }
  const double a = made.real.constant;
  if (operation == symbol("%") && b.constant == 0) fail(place, "expected a number, found a division by zero");
  made.real.constant = operation == symbol("%") ? std::fmod(a, b.constant) : std::pow(a, b.constant);
  return made;
}

}  // namespace onehop::quantum::language
