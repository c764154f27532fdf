// Classical values while a program is read: numbers that are known, and numbers made of classical bits.
#pragma once

#include <complex>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "quantum/language/syntax/syntax.h"

namespace onehop::quantum::language {

// Constants in place of the number of a classical bit.
inline constexpr int zero_bit = -1;
inline constexpr int one_bit = -2;
inline constexpr int default_width = 64;  // of integers without a size
inline constexpr double turn = 2 * std::numbers::pi;

using Bits = std::vector<int>;  // numbers of classical bits, or constants, the least significant first

struct Type {
  TypeKind kind = TypeKind::none;
  int width = 0;                // 0: without a size
  std::vector<int> dimensions;  // of an array
  [[nodiscard]] bool is_array() const noexcept { return !dimensions.empty(); }
  [[nodiscard]] int bits() const noexcept;  // of one element
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Type&, const Type&) = default;
};

// A constant plus a sum of factor * input and factor * bit.
struct Linear {
  double constant = 0;
  std::vector<std::pair<int, double>> inputs;
  std::vector<std::pair<int, double>> bits;
  [[nodiscard]] bool is_constant() const noexcept { return inputs.empty() && bits.empty(); }
  void add(const Linear& other, double factor);
  void scale(double factor);
};

struct Value {
  Type type;
  bool known = true;         // of integers, booleans and sized angles: whether `integer` has the value, or `bits`
  std::int64_t integer = 0;  // of a sized angle in units of 2 pi / 2^width
  Linear real;               // of a real number, an angle without a size or a duration
  std::complex<double> complex;
  Bits bits;  // of a bit or a register of bits always
  std::vector<Value> elements;

  [[nodiscard]] bool has_bits() const noexcept { return type.kind == TypeKind::bit; }
  // A number that is kept in `integer` or `bits`.
  [[nodiscard]] bool is_integral() const noexcept;
  [[nodiscard]] bool is_real() const noexcept;
};

[[nodiscard]] Value integer_value(std::int64_t number, TypeKind kind = TypeKind::integer, int width = 0);
[[nodiscard]] Value boolean_value(int bit);  // a bit or a constant
[[nodiscard]] Value real_value(double number);
[[nodiscard]] Value bits_value(Bits bits, bool is_register = true);
// Cuts a number to the width of its type.
[[nodiscard]] std::int64_t wrapped(std::int64_t number, const Type& type);
// The bits of an integral value, `width` of them; longer than the value with copies of its sign.
[[nodiscard]] Bits bits_of(const Value& value, int width);
[[nodiscard]] bool is_constant(const Bits& bits);
// An operator as it is written.
[[nodiscard]] std::string spelled(Symbol operation);

}  // namespace onehop::quantum::language
