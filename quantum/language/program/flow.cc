// Branches, loops and subroutines.
#include <algorithm>
#include <utility>

#include "quantum/language/program/expander.h"
#include "src/base/text.h"

namespace onehop::quantum::language {
namespace {

constexpr std::size_t deepest_calls = 64;
constexpr std::int64_t share_of_while = 16;  // of all operations and steps, for one loop, which may have no end

}  // namespace

// Runs a body under a condition. `after` receives the condition as it is at its end: as a hidden bit if the body has
// changed its bits.
void Expander::guarded(Condition condition, const std::vector<Statement>& body, Condition* after) {
  if (gate_body_ != nullptr) {
    fail(body.empty() ? Place() : body[0].place, "expected a condition in a gate that does not depend on measurements");
  }
  const std::size_t at = guards_.size();
  push_guard(std::move(condition));
  if (refresh_condition()) (void)execute_scope(body);
  if (after != nullptr) *after = guards_[at].condition;
  guards_.erase(guards_.begin() + static_cast<std::ptrdiff_t>(at));
  refresh_condition();
}

Expander::Flow Expander::if_else(const Statement& statement) {
  const int hidden = circuit_.hidden_clbits;
  const Expression& expression = statement.values[0];
  const int bit = arithmetic_.truth(evaluate(expression), expression.place);
  if (bit == one_bit) return execute_scope(statement.body);
  if (bit == zero_bit) return execute_scope(statement.otherwise);
  // A comparison that nothing else needs is the condition itself.
  const bool own = bit >= first_hidden + hidden && !has_call(expression);
  Condition after;
  guarded(own ? logic_.condition_of(bit) : Condition{{bit}, 1}, statement.body, &after);
  if (statement.otherwise.empty()) return Flow::next;
  if (after.clbits.size() == 1) {
    after.value ^= 1U;
  } else {
    after.negated = !after.negated;
  }
  guarded(std::move(after), statement.otherwise, nullptr);
  return Flow::next;
}

// One repetition of a loop.
Expander::Flow Expander::iterate(const std::vector<Statement>& body, std::string_view name, const Value* value,
                                 Place place) {
  scopes_.emplace_back();
  if (value != nullptr) {
    Variable variable;
    variable.type = value->type;
    variable.value = *value;
    declare(name, place, std::move(variable));
  }
  loops_.back().next = ++levels_;
  const Flow flow = execute_scope(body);
  scopes_.pop_back();
  remove_guards(loops_.back().next);
  return flow == Flow::continued || flow == Flow::dead ? Flow::next : flow;
}

Expander::Flow Expander::for_loop(const Statement& statement) {
  const Expression& in = statement.values[0];
  std::vector<Value> values;
  Type type = statement.type == nullptr ? Type{TypeKind::integer, 0, {}} : type_of(*statement.type);
  if (in.kind == ExpressionKind::range) {
    if ((in.integer & 5) != 5) fail(in.place, "expected a range with a start and an end, found none of them");
    for (const std::int64_t one : range(in, -1)) values.push_back(integer_value(one));
  } else if (in.kind == ExpressionKind::set) {
    for (const Expression& one : in.parts) values.push_back(lasting(evaluate(one)));
  } else {
    Value of = lasting(evaluate(in));
    if (of.type.is_array()) values = std::move(of.elements);
    if (of.has_bits() && !of.type.is_array()) {
      for (const int bit : of.bits) values.push_back(bits_value({bit}, false));
    }
    if (values.empty() && !of.has_bits()) {
      fail(in.place,
           "expected a range such as [0:3], a set, an array or a register, found a value of " + of.type.text());
    }
  }
  if (in.kind != ExpressionKind::range) spend(statement.place, static_cast<std::int64_t>(values.size()));
  loops_.push_back({++levels_, 0, guards_.size(), scopes_.size()});
  Flow flow = Flow::next;
  for (const Value& one : values) {
    const bool as_it_is = one.type.is_array() || statement.type == nullptr;
    const Value value = as_it_is ? one : arithmetic_.cast(one, type, statement.name_place);
    flow = iterate(statement.body, statement.name, &value, statement.name_place);
    if (flow != Flow::next) break;
  }
  const int level = loops_.back().leave;
  loops_.pop_back();
  remove_guards(level);
  return flow == Flow::broken ? Flow::next : flow;
}

Expander::Flow Expander::while_loop(const Statement& statement) {
  const Expression& expression = statement.values[0];
  loops_.push_back({++levels_, 0, guards_.size(), scopes_.size()});
  Flow flow = Flow::next;
  const auto spent = [this] { return steps_ + static_cast<std::int64_t>(circuit_.operations.size()); };
  const std::int64_t most = spent() + options_.operations / share_of_while;
  while (flow == Flow::next) {
    spend(statement.place, 1);
    if (spent() > most) {
      fail(statement.place, "expected a while loop of at most " +
                                base::counted(options_.operations / share_of_while, "operation") +
                                " and steps, found a longer one; does it end? Write a for loop, or set "
                                "ONEHOP_QASM_OPERATIONS to raise the limit");
    }
    const int bit = arithmetic_.truth(evaluate(expression), expression.place);
    if (bit == zero_bit) break;
    const bool may_be_left = std::ranges::find(guards_, loops_.back().leave, &Guard::level) != guards_.end();
    if (bit != one_bit || may_be_left) {
      repeat(statement, bit);
      break;
    }
    flow = iterate(statement.body, {}, nullptr, statement.place);
  }
  const int level = loops_.back().leave;
  loops_.pop_back();
  remove_guards(level);
  return flow == Flow::broken ? Flow::next : flow;
}

Expander::Flow Expander::switch_case(const Statement& statement) {
  const Value value = lasting(evaluate(statement.values[0]));
  // All cases are decided before the first body, which may change the value.
  std::vector<int> chosen;
  int earlier = zero_bit;
  for (const Case& one : statement.cases) {
    int hit = one.labels.empty() ? one_bit : zero_bit;
    for (const Expression& label : one.labels) {
      const Value same = arithmetic_.binary(symbol("=="), value, evaluate(label), label.place);
      hit = logic_.either(hit, arithmetic_.truth(same, label.place));
    }
    chosen.push_back(logic_.all_of({{hit, 1}, {earlier, 0}}));
    earlier = logic_.either(earlier, hit);
  }
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    if (chosen[k] == zero_bit) continue;
    if (chosen[k] == one_bit) return execute_scope(statement.cases[k].body);
    guarded({{chosen[k]}, 1}, statement.cases[k].body, nullptr);
  }
  return Flow::next;
}

Expander::Flow Expander::return_value(const Statement& statement) {
  if (calls_.empty()) fail(statement.place, "expected a subroutine around return, found none");
  if (!statement.values.empty()) {
    const Expression& expression = statement.values[0];
    const Value found = evaluate(expression);  // may call subroutines, which moves calls_
    Call& call = calls_.back();
    const Value value = arithmetic_.cast(found, call.type, expression.place);
    const int holds = call.result.type.kind == TypeKind::none ? one_bit : guard_bit(call.depth);
    call.result = lasting(mixed(holds, value, call.result, statement.place));
  }
  return leave(calls_.back().level, calls_.back().guards, calls_.back().depth, Flow::returned);
}

Value Expander::call(const Statement& subroutine, const std::vector<const Expression*>& arguments, Place place) {
  if (arguments.size() != subroutine.parameters.size()) {
    fail(place, "expected " + std::to_string(subroutine.parameters.size()) + " arguments of '" +
                    std::string(subroutine.name) + "', found " + std::to_string(arguments.size()));
  }
  if (gate_body_ != nullptr) fail(place, "expected gates in the body of a gate, found a subroutine");
  if (calls_.size() >= deepest_calls) {
    fail(place, "expected at most 64 subroutines inside each other, found more; write a loop");
  }
  spend(place, 1);
  Scope scope;
  const std::size_t depth = scopes_.size();
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const Parameter& parameter = subroutine.parameters[k];
    Variable variable;
    variable.depth = depth + 1;
    variable.type = type_of(parameter.type);
    if (variable.type.kind == TypeKind::qubit) {
      variable.kind = Kind::qubits;
      variable.places = qubits_of(*arguments[k]);
      const std::size_t wanted = parameter.type.size.empty() ? 1 : static_cast<std::size_t>(variable.type.width);
      if (variable.places.size() != wanted) {
        fail(arguments[k]->place, "expected " + std::to_string(wanted) + " qubits for '" + std::string(parameter.name) +
                                      "', found " + std::to_string(variable.places.size()));
      }
    } else {
      const Value value = evaluate(*arguments[k]);
      variable.value =
          lasting(parameter.type.is_array ? value : arithmetic_.cast(value, variable.type, arguments[k]->place));
      variable.type = variable.value.type;
    }
    scope.emplace(parameter.name, std::move(variable));
  }
  const std::size_t base = std::exchange(base_, depth);
  scopes_.push_back(std::move(scope));
  std::vector<Loop> loops = std::exchange(loops_, {});
  Call made{++levels_, guards_.size(), depth, {}, {}};
  if (subroutine.type != nullptr) made.type = type_of(*subroutine.type);
  const int level = made.level;
  calls_.push_back(std::move(made));
  const Flow flow = execute_all(subroutine.body);
  Value result = std::move(calls_.back().result);
  calls_.pop_back();
  loops_ = std::move(loops);
  scope = std::move(scopes_.back());
  scopes_.pop_back();
  base_ = base;
  remove_guards(level);
  if (flow == Flow::ended) fail(place, "expected `end` outside of subroutines, found it inside; return instead");
  for (std::size_t k = 0; k < arguments.size(); ++k) {  // arrays that the subroutine may change
    const Parameter& parameter = subroutine.parameters[k];
    if (!parameter.type.is_mutable) continue;
    const Expression& target = *arguments[k];
    const Expression& name = root_of(target);
    Variable& variable = declared(name.text, name.place);
    if (target.kind == ExpressionKind::index) {
      set_indexed(variable, target, scope.at(parameter.name).value);
    } else {
      set(variable, scope.at(parameter.name).value, target.place);
    }
  }
  if (subroutine.type != nullptr && result.type.kind == TypeKind::none) {
    fail(place, "expected '" + std::string(subroutine.name) + "' to return a value, found none");
  }
  return result;
}

}  // namespace onehop::quantum::language
