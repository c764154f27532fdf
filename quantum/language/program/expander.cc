// Limits, scopes, conditions, and the operations of the circuit.
#include "quantum/language/program/expander.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::quantum::language {
namespace {

constexpr std::int64_t steps_between_checks = 4096;

void renumber(std::vector<int>& bits, int clbits) {
  for (int& bit : bits) {
    if (bit >= first_hidden) bit += clbits - first_hidden;
  }
}

}  // namespace

Expander::Expander(const std::string& text, const ReadOptions& options)
    : options_(options),
      sources_(options.name, text, options.folder),
      parser_(sources_),
      logic_(circuit_, options.operations),
      arithmetic_(logic_, sources_) {
  circuit_.name = std::filesystem::path(options.name).stem().string();
  arithmetic_.set_version(parser_.version());
}

Circuit Expander::run() {
  for (const std::string_view name : gates_without_include(parser_.version())) define_library(name);
  check_time({});
  Flow flow = Flow::next;
  while (std::optional<Statement> statement = parser_.next()) {
    if (flow == Flow::ended) continue;  // what follows is only parsed
    if (statement->kind == StatementKind::gate || statement->kind == StatementKind::opaque) {
      define_gate(std::move(*statement));
    } else if (statement->kind == StatementKind::subroutine) {
      check_new_name(*statement);
      definitions_.push_back(std::make_unique<Statement>(std::move(*statement)));
      subroutines_[definitions_.back()->name] = definitions_.back().get();
    } else {
      flow = execute(*statement);
    }
  }
  finish();
  return std::move(circuit_);
}

void Expander::finish() {
  for (const std::string_view name : outputs_) {
    const Value& value = find(name)->value;
    const int width = value.type.bits();
    circuit_.registers.push_back({std::string(name), circuit_.clbits, width});
    for (const int bit : bits_of(value, width)) {
      if (bit != zero_bit) logic_.copy(circuit_.clbits, bit);
      ++circuit_.clbits;
    }
  }
  if (circuit_.qubits < 1) throw BadInput("circuit " + circuit_.name + ": expected at least 1 qubit, found none");
  sort_parameters();
  if (circuit_.hidden_clbits == 0) return;
  for (Operation& one : circuit_.operations) {
    renumber(one.clbits, circuit_.clbits);
    renumber(one.condition.clbits, circuit_.clbits);
  }
}

// Parameters are in the order of their names, as in Qiskit.
void Expander::sort_parameters() {
  std::vector<std::string>& names = circuit_.parameters;
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  std::vector<int> places;
  for (const std::string& name : names) {
    places.push_back(static_cast<int>(std::ranges::lower_bound(sorted, name) - sorted.begin()));
  }
  if (names == sorted) return;
  names = std::move(sorted);
  for (Operation& one : circuit_.operations) {
    for (onehop::quantum::Expression& angle : one.angles) {
      for (auto& term : angle.terms) term.first = places[static_cast<std::size_t>(term.first)];
    }
  }
}

void Expander::check_time(Place place) {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
  if (passed.count() <= options_.seconds) return;
  fail(place, "expected a circuit that is read within " + base::number_text(options_.seconds) +
                  " s, found one that takes longer; set ONEHOP_QASM_SECONDS to raise the limit");
}

void Expander::spend(Place place, std::int64_t steps) {
  if (steps > options_.operations - steps_) too_many(place);
  steps_ += steps;
  until_check_ -= steps;
  if (until_check_ >= 0) return;
  until_check_ = steps_between_checks;
  check_time(place);
}

void Expander::count_operations(Place place, std::int64_t operations) {
  if (operations > options_.operations - static_cast<std::int64_t>(circuit_.operations.size())) too_many(place);
}

void Expander::count_bytes(Place place, std::size_t bytes) {
  bytes_ += static_cast<std::int64_t>(bytes);
  if (bytes_ <= options_.bytes) return;
  fail(place, "there is not enough memory to read the circuit: it takes more than " + base::bytes_text(options_.bytes) +
                  "; set ONEHOP_QASM_MEMORY_MIB to raise the limit");
}

void Expander::too_many(Place place) const {
  fail(place, "expected at most " + base::counted(options_.operations, "operation") +
                  " once loops and gates are written out, found more; set ONEHOP_QASM_OPERATIONS to raise the limit");
}

Expander::Variable* Expander::find(std::string_view name) {
  for (std::size_t k = scopes_.size(); k-- > base_;) {
    if (const auto found = scopes_[k].find(name); found != scopes_[k].end()) return &found->second;
  }
  const auto found = scopes_[0].find(name);
  return found == scopes_[0].end() ? nullptr : &found->second;
}

Expander::Variable& Expander::declared(std::string_view name, Place place) {
  Variable* const found = find(name);
  if (found == nullptr) fail(place, "'" + std::string(name) + "' is not defined; declare it first");
  return *found;
}

Expander::Variable& Expander::declare(std::string_view name, Place place, Variable variable) {
  variable.depth = scopes_.size();
  const auto [at, is_new] = scopes_.back().emplace(name, std::move(variable));
  if (!is_new) fail(place, "'" + std::string(name) + "' is declared already; take another name");
  return at->second;
}

// -- conditions -------------------------------------------------------------------------------------------------------

void Expander::push_guard(Condition condition) { guards_.push_back({std::move(condition), scopes_.size(), -1}); }

bool Expander::refresh_condition() {
  if (guards_.empty()) {
    condition_ = {};
    return true;
  }
  if (guards_.size() == 1) {
    condition_ = guards_[0].condition;
    return true;
  }
  std::vector<std::pair<int, int>> wanted;
  for (Guard& guard : guards_) {
    Condition& one = guard.condition;
    if (one.negated) one = {{logic_.assign(one)}, 1};
    for (std::size_t k = 0; k < one.clbits.size(); ++k) {
      const std::pair<int, int> pair(one.clbits[k], static_cast<int>(one.value >> k & 1U));
      if (std::ranges::find(wanted, pair) != wanted.end()) continue;
      if (std::ranges::find(wanted, std::pair(pair.first, 1 - pair.second)) != wanted.end()) return false;
      wanted.push_back(pair);
    }
  }
  condition_ = {};
  if (wanted.size() > 64) {
    condition_ = {{logic_.all_of(wanted)}, 1};
    return true;
  }
  for (const auto& [bit, value] : wanted) {
    condition_.value |= static_cast<std::uint64_t>(value) << condition_.clbits.size();
    condition_.clbits.push_back(bit);
  }
  return true;
}

void Expander::remove_guards(int level) {
  if (std::erase_if(guards_, [level](const Guard& one) { return one.level == level; }) > 0) refresh_condition();
}

// Keeps the truth of conditions that name a bit which changes now.
void Expander::write_guarded_bit(int bit) {
  bool changed = false;
  for (Guard& guard : guards_) {
    if (std::ranges::find(guard.condition.clbits, bit) == guard.condition.clbits.end()) continue;
    guard.condition = {{logic_.assign(guard.condition)}, 1};
    changed = true;
  }
  if (changed) refresh_condition();
}

// The bit that says whether the guards hold that end before a variable of `depth` scopes does.
int Expander::guard_bit(std::size_t depth) {
  std::vector<std::pair<int, int>> wanted;
  for (Guard& guard : guards_) {
    if (guard.depth < depth) continue;
    if (guard.condition.negated) guard.condition = {{logic_.assign(guard.condition)}, 1};
    for (std::size_t k = 0; k < guard.condition.clbits.size(); ++k) {
      wanted.emplace_back(guard.condition.clbits[k], static_cast<int>(guard.condition.value >> k & 1U));
    }
  }
  return logic_.all_of(wanted);
}

// Leaves a loop, a subroutine or the program. If that depends on measurements, the rest gets the condition that it was
// not left.
Expander::Flow Expander::leave(int level, std::size_t guards, std::size_t depth, Flow known) {
  // Where the only condition is that it was not left earlier, it is left in any case.
  const auto inner = guards_.begin() + static_cast<std::ptrdiff_t>(std::min(guards, guards_.size()));
  if (std::all_of(inner, guards_.end(), [level](const Guard& one) { return one.level == level; })) return known;
  const int left = logic_.assign(condition_);
  const auto found = std::ranges::find(guards_, level, &Guard::level);
  if (found == guards_.end()) {
    guards_.push_back({{{left}, 0}, depth, level});
  } else {
    found->condition = {{logic_.either(found->condition.clbits[0], left)}, 0};
  }
  refresh_condition();
  return Flow::dead;
}

// -- operations -------------------------------------------------------------------------------------------------------

void Expander::emit(Operation operation, Place place) {
  if (gate_body_ != nullptr) {
    gate_body_->push_back(std::move(operation));
    return;
  }
  count_operations(place, 1);
  if ((circuit_.operations.size() & 4095U) == 4095U) check_time(place);
  count_bytes(place, sizeof(Operation) + operation.values.capacity() * sizeof(Complex) +
                         (operation.targets.size() + operation.controls.size()) * sizeof(int));
  if (operation.kind != OperationKind::barrier) {
    for (const int qubit : operation.targets) fresh_[static_cast<std::size_t>(qubit)] = false;
    for (const int qubit : operation.controls) fresh_[static_cast<std::size_t>(qubit)] = false;
  }
  circuit_.operations.push_back(std::move(operation));
}

// Appends a gate. An angle that depends on measured bits becomes one gate for each of them, under its condition.
void Expander::emit_gate(Operation operation, Place place) {
  const auto is_bit = [](const std::pair<int, double>& term) { return term.first >= first_bit_term; };
  const bool depends = std::ranges::any_of(operation.angles, [&](const onehop::quantum::Expression& angle) {
    return std::ranges::any_of(angle.terms, is_bit);
  });
  operation.condition = condition_;
  if (!depends) {
    emit(std::move(operation), place);
    return;
  }
  Circuit one;
  one.operations = {operation};
  std::vector<Operation> parts;
  try {
    parts = with_rotations(one).operations;
  } catch (const BadInput&) {
    fail(place, "expected a gate of rotations and phases for an angle that depends on measurements, found '" +
                    operation.name + "'; write an if statement");
  }
  for (const Operation& part : parts) {
    if (part.angles.empty()) {
      emit(part, place);
      continue;
    }
    onehop::quantum::Expression rest = part.angles[0];
    std::erase_if(rest.terms, is_bit);
    Operation made = part;
    made.angle = rest.terms.empty() ? rest.constant : part.angle;
    made.angles.clear();
    if (!rest.terms.empty()) made.angles = {rest};
    if (rest.constant != 0 || !rest.terms.empty()) emit(made, place);
    for (const auto& [index, factor] : part.angles[0].terms) {
      if (index < first_bit_term) continue;
      const int bit = bit_terms_[static_cast<std::size_t>(index - first_bit_term)];
      made.angles.clear();
      made.angle = factor;
      push_guard({{bit}, 1});
      if (refresh_condition()) {
        made.condition = condition_;
        emit(made, place);
      }
      guards_.pop_back();
      refresh_condition();
    }
  }
}

// Measurements one after another under the same condition become one operation.
void Expander::emit_measurement(int qubit, int bit, Place place) {
  count_operations(place, 1);
  write_guarded_bit(bit);
  if (bit < first_hidden) known_bits_[static_cast<std::size_t>(bit)] = -1;
  fresh_[static_cast<std::size_t>(qubit)] = false;
  if (!circuit_.operations.empty()) {
    Operation& last = circuit_.operations.back();
    const auto has = [](const std::vector<int>& all, int one) { return std::ranges::find(all, one) != all.end(); };
    if (last.kind == OperationKind::measure && last.condition == condition_ && !has(last.targets, qubit) &&
        !has(last.clbits, bit) && !has(condition_.clbits, bit)) {
      last.targets.push_back(qubit);
      last.clbits.push_back(bit);
      return;
    }
  }
  Operation made;
  made.kind = OperationKind::measure;
  made.name = "measure";
  made.targets = {qubit};
  made.clbits = {bit};
  made.condition = condition_;
  circuit_.operations.push_back(std::move(made));
}

}  // namespace onehop::quantum::language

namespace onehop::quantum {

Circuit read_qasm(const std::string& text, const ReadOptions& options) {
  return language::Expander(text, options).run();
}

}  // namespace onehop::quantum
