// Indices and bounds of loops that depend on measurements: a statement is read for each of their values, under the
// condition that it is this one. An index out of range does nothing.
#include <algorithm>
#include <array>
#include <utility>

#include "quantum/language/program/expander.h"

namespace onehop::quantum::language {
namespace {

constexpr std::size_t most_unknown_bits = 10;  // of the bound of a loop

}  // namespace

// An integer. Throws UnknownNumber if it depends on measurements; it is then one of its choices when it is asked again.
std::int64_t Expander::number_of(const Expression& expression, const char* what, std::int64_t size) {
  for (const Choice& one : choices_) {
    if (one.expression == &expression && one.calls == calls_.size()) return one.number;
  }
  Value value = evaluate(expression);
  const bool known = !value.is_integral() || (value.known && !value.has_bits()) || is_constant(value.bits);
  if (known || gate_body_ != nullptr) return arithmetic_.integer(value, expression.place, what);
  throw UnknownNumber(expression, lasting(std::move(value)), size);
}

// The values that a number may have, each with the bit that says whether it has it.
std::vector<std::pair<std::int64_t, int>> Expander::choices(const UnknownNumber& unknown) {
  const Type& type = unknown.value.type;
  const Bits bits = bits_of(unknown.value, type.bits());
  std::vector<std::int64_t> numbers;
  if (unknown.size >= 0) {
    for (std::int64_t k = type.kind == TypeKind::integer ? -unknown.size : 0; k < unknown.size; ++k) {
      if (wrapped(k, type) == k) numbers.push_back(k);
    }
  } else {
    Bits open = bits;
    std::erase_if(open, [](int bit) { return bit < 0; });
    std::ranges::sort(open);
    open.erase(std::unique(open.begin(), open.end()), open.end());
    if (open.size() > most_unknown_bits) {
      fail(unknown.expression->place, "expected a bound of at most 10 bits that depend on measurements, found " +
                                          std::to_string(open.size()) + "; give its variable a size, as in uint[4]");
    }
    for (std::uint64_t k = 0; k < std::uint64_t{1} << open.size(); ++k) {
      std::uint64_t number = 0;
      for (std::size_t place = 0; place < std::min<std::size_t>(bits.size(), 64); ++place) {
        const auto found = std::ranges::find(open, bits[place]);
        const bool one = found == open.end() ? bits[place] == one_bit : (k >> (found - open.begin()) & 1U) != 0;
        number |= static_cast<std::uint64_t>(one) << place;
      }
      numbers.push_back(wrapped(static_cast<std::int64_t>(number), type));
    }
  }
  spend(unknown.expression->place, static_cast<std::int64_t>(numbers.size()));
  std::vector<std::pair<std::int64_t, int>> found;
  for (const std::int64_t number : numbers) {
    const int bit = logic_.equal(bits, bits_of(integer_value(number), static_cast<int>(bits.size())));
    if (bit != zero_bit) found.emplace_back(number, bit);
  }
  return found;
}

Expander::Flow Expander::execute_choices(const Statement& statement, const UnknownNumber& unknown) {
  const auto calls = [](const std::vector<Expression>& all) { return std::ranges::any_of(all, has_call); };
  constexpr std::array others = {StatementKind::declare, StatementKind::alias, StatementKind::while_loop,
                                 StatementKind::output,  StatementKind::input, StatementKind::return_value};
  if (std::ranges::find(others, statement.kind) != others.end() || calls(statement.values) ||
      calls(statement.targets)) {
    fail(unknown.expression->place,
         "expected a number that is known before the run, found one that depends on measurements; use it in a "
         "statement of its own: a gate, a measurement, an assignment or an if statement");
  }
  for (const auto& [number, bit] : choices(unknown)) {
    choices_.push_back({unknown.expression, calls_.size(), number});
    const std::size_t at = guards_.size();
    push_guard({{bit}, 1});
    if (refresh_condition()) (void)execute(statement);
    guards_.erase(guards_.begin() + static_cast<std::ptrdiff_t>(at));
    refresh_condition();
    choices_.pop_back();
  }
  return Flow::next;
}

// The value that an expression has for one of the values of an index.
Value Expander::chosen_element(const Expression& expression, const UnknownNumber& unknown) {
  Value made;
  for (const auto& [number, bit] : choices(unknown)) {
    choices_.push_back({unknown.expression, calls_.size(), number});
    Value one = lasting(evaluate_index(expression));
    choices_.pop_back();
    if (made.type.kind == TypeKind::none && !one.is_real()) {
      made = std::move(one);
    } else if (made.type.kind != TypeKind::none && made.type != one.type) {
      fail(unknown.expression->place, "expected a slice of a size that does not depend on measurements, found another");
    } else if (one.is_real()) {  // the sum of the values, each times its bit
      if (!one.real.is_constant()) {
        fail(expression.place, "expected elements that are known before the run, found others");
      }
      Linear part;
      part.bits = {{bit, one.real.constant}};
      one.real = std::move(made.real);
      one.real.add(part, 1);
      made = std::move(one);
    } else {
      made = mixed(bit, one, made, expression.place);
    }
  }
  return made;
}

}  // namespace onehop::quantum::language
