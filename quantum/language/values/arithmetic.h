// Operators, casts and functions of classical values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quantum/language/text/source.h"
#include "quantum/language/values/logic.h"
#include "quantum/language/values/value.h"

namespace onehop::quantum::language {

class Arithmetic {
 public:
  Arithmetic(Logic& logic, const Sources& sources) : logic_(logic), sources_(sources) {}
  void set_version(int version) noexcept { version_ = version; }

  // Each throws BadInput that names the place for operands that it cannot take.
  [[nodiscard]] Value unary(Symbol operation, const Value& of, Place place);
  [[nodiscard]] Value binary(Symbol operation, const Value& left, const Value& right, Place place);
  [[nodiscard]] Value cast(const Value& value, const Type& type, Place place);
  // Whether `name` is a function of classical values; then `result` receives its value.
  [[nodiscard]] bool call(std::string_view name, const std::vector<Value>& of, Place place, Value& result);
  // Whether `name` is a constant such as pi; then `result` receives its value.
  [[nodiscard]] static bool constant(std::string_view name, Value& result);

  // The bit that says whether a value is true.
  [[nodiscard]] int truth(const Value& value, Place place);
  // A number that must be known while the program is read.
  [[nodiscard]] std::int64_t integer(const Value& value, Place place, const char* what) const;
  [[nodiscard]] double real(const Value& value, Place place, const char* what) const;
  // A real number that may depend on inputs and bits.
  [[nodiscard]] Linear linear(const Value& value, Place place) const;

 private:
  [[noreturn]] void fail(Place place, const std::string& message) const { sources_.fail(place, message); }
  Value compare(Symbol operation, const Value& left, const Value& right, Place place);
  Value bitwise(Symbol operation, const Value& left, const Value& right, Place place);
  Value shift(Symbol operation, const Value& left, const Value& right, Place place);
  Value real_arithmetic(Symbol operation, const Value& left, const Value& right, Place place);
  Value complex_arithmetic(Symbol operation, const Value& left, const Value& right, Place place);
  Value integer_arithmetic(Symbol operation, const Value& left, const Value& right, Place place);
  Value unknown_arithmetic(Symbol operation, const Value& left, const Value& right, const Type& type, Place place);
  Value unknown_division(Symbol operation, const Value& left, const Value& right, const Type& type, Place place);
  Value made_of(Bits bits, const Type& type) const;
  Value count_ones(const Value& of, Place place);
  [[nodiscard]] std::complex<double> complex(const Value& value, Place place) const;

  Logic& logic_;
  const Sources& sources_;
  int version_ = 3;
};

}  // namespace onehop::quantum::language
