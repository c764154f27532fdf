// Loops whose end depends on measurements. The body becomes operations once, between a mark and a jump back to it.
//
// A variable that the body assigns to has a home while the loop runs: hidden bits that are set before the loop and at
// the end of each turn. All other hidden bits are set and read within one turn.
#include <algorithm>
#include <utility>

#include "quantum/language/program/expander.h"

namespace onehop::quantum::language {

// The names that statements may assign to, also in the subroutines that they call.
void Expander::assigned_names(const std::vector<Statement>& statements, std::set<std::string_view>& names) const {
  const auto called = [&](std::string_view name, const std::vector<Expression>& arguments) {
    const auto found = subroutines_.find(name);
    if (found == subroutines_.end()) return;
    for (const Expression& one : arguments) names.insert(root_of(one).text);
    if (names.insert(name).second) assigned_names(found->second->body, names);
  };
  const auto search = [&](const auto& self, const std::vector<Expression>& expressions) -> void {
    for (const Expression& one : expressions) {
      if (one.kind == ExpressionKind::call) called(one.text, one.parts);
      self(self, one.parts);
    }
  };
  for (const Statement& one : statements) {
    const bool assigns = one.kind == StatementKind::assign || one.kind == StatementKind::measure;
    if (assigns) names.insert(root_of(one.targets.back()).text);
    if (one.kind == StatementKind::gate_call) called(one.name, one.values);
    search(search, one.values);
    search(search, one.targets);
    assigned_names(one.body, names);
    assigned_names(one.otherwise, names);
    for (const Case& branch : one.cases) assigned_names(branch.body, names);
  }
}

// The same value in new hidden bits.
Value Expander::housed(const Value& value, Place place) {
  Value made = value;
  if (value.type.is_array()) {
    for (Value& one : made.elements) one = housed(one, place);
  } else if (value.is_integral()) {
    Bits bits = bits_of(value, value.type.bits());
    for (int& bit : bits) {
      const int source = std::exchange(bit, logic_.new_bit());
      if (source != zero_bit || repeated_ > 0) logic_.copy(bit, source);  // new bits are 0, but for an outer loop
    }
    const bool is_register = value.type.width > 0 || bits.size() > 1;
    made = arithmetic_.cast(bits_value(std::move(bits), is_register), value.type, place);
  }
  return made;
}

// Adds the bits of a home, with the bits that they become.
void Expander::move_home(const Value& home, const Value& value, std::string_view name, Place place,
                         std::vector<std::pair<int, int>>& moves) const {
  if (home.type.is_array()) {
    for (std::size_t k = 0; k < home.elements.size(); ++k) {
      move_home(home.elements[k], value.elements[k], name, place, moves);
    }
  } else if (home.is_integral()) {
    const int width = home.type.bits();
    const Bits to = bits_of(home, width);
    const Bits from = bits_of(value, width);
    for (std::size_t k = 0; k < to.size(); ++k) moves.emplace_back(to[k], from[k]);
  } else if (home.real.constant != value.real.constant || home.real.inputs != value.real.inputs ||
             home.real.bits != value.real.bits || home.complex != value.complex) {
    fail(place,
         "expected bits, integers or angles of a size to change in a loop whose end depends on measurements, "
         "found '" +
             std::string(name) + "' of the type " + home.type.text());
  }
}

void Expander::move_bits(std::vector<std::pair<int, int>> moves) {
  std::erase_if(moves, [](const auto& move) { return move.first == move.second; });
  std::set<int> changed;
  for (const auto& [to, from] : moves) changed.insert(to);
  for (auto& move : moves) {  // a bit that changes is read first
    if (changed.contains(move.second)) move.second = logic_.assign({{move.second}, 1});
  }
  for (const auto& [to, from] : moves) logic_.copy(to, from);
}

// Appends a mark, or a jump under the present condition.
void Expander::add_jump(OperationKind kind, int label, Place place) {
  count_operations(place, 1);
  Operation made;
  made.kind = kind;
  made.name = kind == OperationKind::mark ? "mark" : "jump";
  made.index = label;
  if (kind == OperationKind::jump) made.condition = condition_;
  circuit_.operations.push_back(std::move(made));
}

// Conditions from `first` on that outlive the loop, on what a turn has left: a subroutine or the program. They are kept
// in bits that are 0 where `place` is, before the loop.
void Expander::keep_left(std::size_t first, int level, std::size_t place) {
  for (std::size_t k = first; k < guards_.size(); ++k) {
    if (guards_[k].level == level) continue;
    const int bit = logic_.new_bit();
    logic_.copy(bit, zero_bit);
    std::rotate(circuit_.operations.begin() + static_cast<std::ptrdiff_t>(place), circuit_.operations.end() - 1,
                circuit_.operations.end());
    logic_.copy(bit, guards_[k].condition.clbits[0]);
    guards_[k].condition = {{bit}, 0};
  }
}

// Runs the turns of a while loop from one on that depends on a bit, or on a `break` before.
void Expander::repeat(const Statement& statement, int bit) {
  const Expression& expression = statement.values[0];
  const int first_bit = first_hidden + circuit_.hidden_clbits;
  const int start = ++marks_;
  const int end = ++marks_;
  const std::size_t before = guards_.size();
  if (bit != one_bit) push_guard({{bit}, 1});
  for (Guard& guard : guards_) {  // the body may change the bits of a condition
    const std::vector<int>& bits = guard.condition.clbits;
    if (std::ranges::any_of(bits, [](int one) { return one < first_hidden; })) {
      guard.condition = {{logic_.assign(guard.condition)}, 1};
    }
  }
  struct Home {
    std::size_t scope;
    std::string_view name;
    Value value;
  };
  std::set<std::string_view> names;
  assigned_names(statement.body, names);
  std::vector<Home> homes;
  for (std::size_t k = 0; k < scopes_.size(); ++k) {
    if (k != 0 && k < base_) continue;
    for (auto& [name, variable] : scopes_[k]) {
      if (variable.kind != Kind::value || variable.constant || !names.contains(name)) continue;
      variable.value = housed(variable.value, statement.place);
      homes.push_back({k, name, variable.value});
    }
  }
  const bool holds = refresh_condition();
  const std::size_t place = circuit_.operations.size();
  if (!condition_.clbits.empty()) {
    condition_.negated = !condition_.negated;
    add_jump(OperationKind::jump, end, statement.place);
  }
  add_jump(OperationKind::mark, start, statement.place);
  // Inside, none of the conditions around matters. The last one keeps what is outside from being left in any case.
  std::vector<Guard> outer = std::exchange(guards_, std::vector<Guard>(guards_.size() + 1, Guard{}));
  guards_.back().level = ++levels_;
  const std::size_t inside = guards_.size();
  refresh_condition();
  known_bits_.assign(known_bits_.size(), -1);
  fresh_.assign(fresh_.size(), false);
  ++repeated_;
  loops_.push_back({++levels_, 0, guards_.size(), scopes_.size()});
  const int level = loops_.back().leave;
  const Flow flow = holds ? iterate(statement.body, {}, nullptr, statement.place) : Flow::broken;
  const int again = flow == Flow::next ? arithmetic_.truth(evaluate(expression), expression.place) : zero_bit;
  std::vector<std::pair<int, int>> moves;
  for (const Home& home : homes) {
    Value& value = scopes_[home.scope].at(home.name).value;
    move_home(home.value, value, home.name, statement.place, moves);
    value = home.value;
  }
  if (again != one_bit) push_guard({{again}, 1});
  const bool turns = again != zero_bit && refresh_condition();
  if (!condition_.clbits.empty() && turns) condition_ = {{logic_.assign(condition_)}, 1};  // before bits move
  move_bits(std::move(moves));
  if (again != one_bit) guards_.pop_back();
  keep_left(inside, level, place);
  if (turns) add_jump(OperationKind::jump, start, statement.place);
  loops_.pop_back();
  --repeated_;
  remove_guards(level);
  add_jump(OperationKind::mark, end, statement.place);
  outer.resize(before);
  outer.insert(outer.end(), guards_.begin() + static_cast<std::ptrdiff_t>(inside), guards_.end());
  guards_ = std::move(outer);
  refresh_condition();
  known_bits_.assign(known_bits_.size(), -1);
  logic_.forget_from(first_bit);
}

}  // namespace onehop::quantum::language
