#include "quantum/language/values/value.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace onehop::quantum::language {
namespace {

void add_terms(std::vector<std::pair<int, double>>& terms, const std::vector<std::pair<int, double>>& more,
               double factor) {
  for (const auto& [index, value] : more) {
    const auto found = std::ranges::find(terms, index, &std::pair<int, double>::first);
    if (found == terms.end()) {
      terms.emplace_back(index, factor * value);
    } else {
      found->second += factor * value;
    }
  }
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
}

}  // namespace

int Type::bits() const noexcept {
  if (kind == TypeKind::bit || kind == TypeKind::boolean) return width == 0 ? 1 : width;
  return width == 0 ? default_width : width;
}

std::string Type::text() const {
  constexpr std::array<std::string_view, 10> names = {"nothing", "bit",   "bool",    "int",      "uint",
                                                      "float",   "angle", "complex", "duration", "qubit"};
  std::string found(names[static_cast<std::size_t>(kind)]);
  if (width > 0) found += "[" + std::to_string(width) + "]";
  return is_array() ? "array of " + found : found;
}

void Linear::add(const Linear& other, double factor) {
  constant += factor * other.constant;
  add_terms(inputs, other.inputs, factor);
  add_terms(bits, other.bits, factor);
}

void Linear::scale(double factor) {
  Linear scaled;
  scaled.add(*this, factor);
  *this = std::move(scaled);
}

bool Value::is_integral() const noexcept {
  return !type.is_array() &&
         (type.kind == TypeKind::bit || type.kind == TypeKind::boolean || type.kind == TypeKind::integer ||
          type.kind == TypeKind::natural || (type.kind == TypeKind::angle && type.width > 0));
}

bool Value::is_real() const noexcept {
  return !type.is_array() && (type.kind == TypeKind::real || type.kind == TypeKind::duration ||
                              (type.kind == TypeKind::angle && type.width == 0));
}

Value integer_value(std::int64_t number, TypeKind kind, int width) {
  Value made;
  made.type = {kind, width, {}};
  made.integer = number;
  return made;
}

Value boolean_value(int bit) {
  Value made = integer_value(bit == one_bit ? 1 : 0, TypeKind::boolean);
  made.known = bit == one_bit || bit == zero_bit;
  made.bits = {bit};
  return made;
}

Value real_value(double number) {
  Value made;
  made.type.kind = TypeKind::real;
  made.real.constant = number;
  return made;
}

Value bits_value(Bits bits, bool is_register) {
  Value made;
  made.type = {TypeKind::bit, is_register ? static_cast<int>(bits.size()) : 0, {}};
  made.bits = std::move(bits);
  return made;
}

std::int64_t wrapped(std::int64_t number, const Type& type) {
  const int width = type.bits();
  if (width >= 64) return number;
  const std::uint64_t low = static_cast<std::uint64_t>(number) & ((std::uint64_t{1} << width) - 1);
  const bool negative = type.kind == TypeKind::integer && (low >> (width - 1) & 1U) != 0;
  return static_cast<std::int64_t>(negative ? low | ~std::uint64_t{0} << width : low);
}

Bits bits_of(const Value& value, int width) {
  Bits found;
  const auto size = static_cast<std::size_t>(width);
  if (value.has_bits() || !value.known) {
    found = value.bits;
    const int sign = value.type.kind == TypeKind::integer && !found.empty() ? found.back() : zero_bit;
    found.resize(size, sign);
    return found;
  }
  for (int k = 0; k < width; ++k) {
    found.push_back((value.integer >> std::min(k, 63) & 1) != 0 && (k < 64 || value.integer < 0) ? one_bit : zero_bit);
  }
  return found;
}

bool is_constant(const Bits& bits) {
  return std::ranges::all_of(bits, [](int bit) { return bit < 0; });
}

std::string spelled(Symbol operation) {
  std::string found;
  for (; operation != 0; operation >>= 8) found.insert(found.begin(), static_cast<char>(operation & 0xFFU));
  return found;
}

}  // namespace onehop::quantum::language
