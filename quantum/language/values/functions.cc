// Casts, and the functions and constants of OpenQASM.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "quantum/language/values/arithmetic.h"

namespace onehop::quantum::language {
namespace {

struct Function {
  std::string_view name;
  double (*of)(double);
};
constexpr std::array functions = {Function{"sin", [](double x) { return std::sin(x); }},
                                  Function{"cos", [](double x) { return std::cos(x); }},
                                  Function{"tan", [](double x) { return std::tan(x); }},
                                  Function{"exp", [](double x) { return std::exp(x); }},
                                  Function{"ln", [](double x) { return std::log(x); }},
                                  Function{"log", [](double x) { return std::log(x); }},
                                  Function{"sqrt", [](double x) { return std::sqrt(x); }},
                                  Function{"arcsin", [](double x) { return std::asin(x); }},
                                  Function{"asin", [](double x) { return std::asin(x); }},
                                  Function{"arccos", [](double x) { return std::acos(x); }},
                                  Function{"acos", [](double x) { return std::acos(x); }},
                                  Function{"arctan", [](double x) { return std::atan(x); }},
                                  Function{"atan", [](double x) { return std::atan(x); }},
                                  Function{"floor", [](double x) { return std::floor(x); }},
                                  Function{"ceiling", [](double x) { return std::ceil(x); }}};

Bits rotated(Bits bits, std::int64_t by) {
  const auto size = static_cast<std::int64_t>(bits.size());
  const std::int64_t left = size == 0 ? 0 : ((by % size) + size) % size;
  std::rotate(bits.begin(), bits.end() - left, bits.end());
  return bits;
}

// Radians in units of 2 pi / 2^width, as a number of `width` bits.
std::int64_t units(double radians, int width) {
  double part = std::fmod(radians / turn, 1.0);
  if (part < 0) part += 1;
  const double number = std::nearbyint(std::ldexp(part, width));
  return static_cast<std::int64_t>(number < 0x1p64 ? static_cast<std::uint64_t>(number) : 0);
}

}  // namespace

Value Arithmetic::cast(const Value& value, const Type& type, Place place) {
  if (value.type == type) return value;
  const auto refuse = [&]() {
    fail(place, "expected a value of the type " + type.text() + ", found one of " + value.type.text());
  };
  if (value.type.is_array() || type.is_array() || type.kind == TypeKind::qubit || value.type.kind == TypeKind::none) {
    refuse();
  }
  Value made;
  made.type = type;
  switch (type.kind) {
    case TypeKind::boolean:
      return boolean_value(truth(value, place));
    case TypeKind::complex:
      made.complex = complex(value, place);
      return made;
    case TypeKind::duration:
      if (value.type.kind != TypeKind::duration) refuse();
      return value;
    case TypeKind::real:
      if (value.type.kind == TypeKind::complex || value.type.kind == TypeKind::duration) refuse();
      made.real = linear(value, place);
      return made;
    case TypeKind::angle:
      if (value.type.kind == TypeKind::complex || value.type.kind == TypeKind::duration) refuse();
      if (type.width == 0) {
        made.real = linear(value, place);
        return made;
      }
      if (value.is_integral() && value.type.kind == TypeKind::angle) {  // keep the most significant bits
        Bits bits = bits_of(value, value.type.width);
        const int more = type.width - value.type.width;
        if (more > 0) bits.insert(bits.begin(), static_cast<std::size_t>(more), zero_bit);
        if (more < 0) bits.erase(bits.begin(), bits.begin() - more);
        return made_of(std::move(bits), type);
      }
      if (value.has_bits()) return made_of(bits_of(value, type.width), type);
      made.integer = wrapped(units(real(value, place, "an angle"), type.width), type);
      return made;
    case TypeKind::bit:
      if (!value.is_integral()) refuse();
      if (value.has_bits() && value.bits.size() != static_cast<std::size_t>(type.bits())) {
        fail(place, "expected " + std::to_string(type.bits()) + " bits, found " + std::to_string(value.bits.size()));
      }
      if (!value.has_bits() && type.width == 0) return bits_value({truth(value, place)}, false);
      return bits_value(bits_of(value, type.bits()), type.width > 0);
    default:
      break;
  }
  if (value.is_real() && value.type.kind != TypeKind::duration) {
    const double number = std::trunc(real(value, place, "a number"));
    if (!(std::abs(number) < 0x1p63)) fail(place, "expected a number below 2^63, found another one");
    made.integer = wrapped(static_cast<std::int64_t>(number), type);
    return made;
  }
  if (!value.is_integral()) refuse();
  return made_of(bits_of(value, type.bits()), type);
}

Value Arithmetic::complex_arithmetic(Symbol operation, const Value& left, const Value& right, Place place) {
  const std::complex<double> a = complex(left, place);
  const std::complex<double> b = complex(right, place);
  Value made;
  made.type.kind = TypeKind::complex;
  switch (operation) {
    case symbol("+"):
      made.complex = a + b;
      break;
    case symbol("-"):
      made.complex = a - b;
      break;
    case symbol("*"):
      made.complex = a * b;
      break;
    case symbol("/"):
      if (b == 0.0) fail(place, "expected a number, found a division by zero");
      made.complex = a / b;
      break;
    case symbol("**"):
      made.complex = std::pow(a, b);
      break;
    default:
      fail(place, "expected + - * / or ** between complex numbers, found " + spelled(operation));
  }
  return made;
}

bool Arithmetic::constant(std::string_view name, Value& result) {
  if (name == "pi" || name == "\xCF\x80") {
    result = real_value(std::numbers::pi);
  } else if (name == "tau" || name == "\xCF\x84") {
    result = real_value(turn);
  } else if (name == "euler" || name == "\xE2\x84\x87") {
    result = real_value(std::numbers::e);
  } else {
    return false;
  }
  return true;
}

Value Arithmetic::count_ones(const Value& of, Place place) {
  if (!of.is_integral()) fail(place, "popcount: expected bits or an integer, found a value of " + of.type.text());
  Bits sum(default_width, zero_bit);
  for (const int bit : bits_of(of, of.type.bits())) {
    Bits one(default_width, zero_bit);
    one[0] = bit;
    sum = logic_.sum(sum, one);
  }
  return made_of(std::move(sum), {TypeKind::natural, 0, {}});
}

bool Arithmetic::call(std::string_view name, const std::vector<Value>& of, Place place, Value& result) {
  const auto arguments = [&](std::size_t least, std::size_t most) {
    if (of.size() < least || of.size() > most) {
      fail(place, std::string(name) + ": expected " + std::to_string(most) + (most == 1 ? " argument" : " arguments") +
                      ", found " + std::to_string(of.size()));
    }
  };
  if (const auto* const found = std::ranges::find(functions, name, &Function::name); found != functions.end()) {
    arguments(1, 1);
    if (of[0].type.kind == TypeKind::complex && (name == "exp" || name == "sqrt")) {
      result = of[0];
      result.complex = name == "exp" ? std::exp(of[0].complex) : std::sqrt(of[0].complex);
      return true;
    }
    const double argument = real(of[0], place, "an argument");
    if ((name == "ln" || name == "log") && argument == 0) fail(place, "expected a number above 0, found ln(0)");
    const double answer = found->of(argument);
    if (std::isnan(answer) && !std::isnan(argument)) {
      fail(place, "expected an argument for which '" + std::string(name) + "' has a value, found another one");
    }
    result = real_value(answer);
  } else if (name == "popcount") {
    arguments(1, 1);
    result = count_ones(of[0], place);
  } else if (name == "pow") {
    arguments(2, 2);
    result = binary(symbol("**"), of[0], of[1], place);
  } else if (name == "mod") {
    arguments(2, 2);
    result = binary(symbol("%"), of[0], of[1], place);
  } else if (name == "rotl" || name == "rotr") {
    arguments(2, 2);
    if (!of[0].is_integral()) fail(place, std::string(name) + ": expected bits or an integer");
    const std::int64_t by = integer(of[1], place, "a number of places") % of[0].type.bits();
    result = made_of(rotated(bits_of(of[0], of[0].type.bits()), name == "rotl" ? by : -by), of[0].type);
  } else if (name == "real" || name == "imag") {
    arguments(1, 1);
    const std::complex<double> number = complex(of[0], place);
    result = real_value(name == "real" ? number.real() : number.imag());
  } else if (name == "sizeof") {
    arguments(1, 2);
    const std::int64_t dimension = of.size() == 2 ? integer(of[1], place, "a dimension") : 0;
    const bool is_array = of[0].type.is_array();
    const auto most = static_cast<std::int64_t>(of[0].type.dimensions.size());
    if (is_array ? dimension < 0 || dimension >= most : !of[0].has_bits()) {
      fail(place, "sizeof: expected an array and one of its dimensions");
    }
    result = integer_value(is_array ? of[0].type.dimensions[static_cast<std::size_t>(dimension)] : of[0].type.bits(),
                           TypeKind::natural);
  } else {
    return false;
  }
  return true;
}

}  // namespace onehop::quantum::language
