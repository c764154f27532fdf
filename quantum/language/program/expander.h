// Runs a program while it is read: what is known is evaluated, the rest becomes operations of a circuit.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onehop/quantum/language.h"
#include "quantum/language/gates/gates.h"
#include "quantum/language/syntax/parser.h"
#include "quantum/language/values/arithmetic.h"
#include "quantum/language/values/logic.h"
#include "quantum/language/values/value.h"

namespace onehop::quantum::language {

inline constexpr int first_bit_term = 1 << 24;   // indices of bits among the parameters of an angle
inline constexpr int deepest_evaluation = 3000;  // statements and expressions inside each other, over subroutines

class Expander {
 public:
  Expander(const std::string& text, const ReadOptions& options);
  Circuit run();

 private:
  enum class Kind : std::uint8_t { qubits, bits, value };
  // Qubits, classical bits of the circuit, or a value that is known or made of hidden bits.
  struct Variable {
    Kind kind = Kind::value;
    Type type;
    std::vector<int> places;  // of qubits and bits
    Value value;
    bool constant = false;
    std::size_t depth = 0;  // the number of scopes around it
  };
  using Scope = std::unordered_map<std::string_view, Variable>;

  // A condition of what is being read. Statements after a `break` that depends on a measurement, for example, have the
  // condition that it was not done; `level` is then the number of the loop at whose end that does not matter any more.
  struct Guard {
    Condition condition;
    std::size_t depth = 0;  // variables of fewer scopes outlive it
    int level = -1;
  };
  struct Loop {
    int leave = 0;  // level of break
    int next = 0;   // level of continue
    std::size_t guards = 0;
    std::size_t depth = 0;
  };
  struct Call {
    int level = 0;
    std::size_t guards = 0;
    std::size_t depth = 0;
    Type type;
    Value result;
  };
  // An index, or a bound of a loop (size -1), that depends on measurements.
  struct UnknownNumber : std::exception {
    UnknownNumber(const Expression& which, Value bits, std::int64_t limit)
        : expression(&which), value(std::move(bits)), size(limit) {}
    const Expression* expression;
    Value value;
    std::int64_t size;
  };
  // What such an expression is, while one of its values is read.
  struct Choice {
    const Expression* expression = nullptr;
    std::size_t calls = 0;
    std::int64_t number = 0;
  };
  // How a statement ends: the rest of its block is done, or not. `dead`: not, for measurements that led here.
  enum class Flow : std::uint8_t { next, dead, broken, continued, returned, ended };

  [[noreturn]] void fail(Place place, const std::string& message) const { sources_.fail(place, message); }

  // -- expander.cc: limits, scopes, conditions, operations
  void spend(Place place, std::int64_t steps);
  void check_time(Place place);
  void count_operations(Place place, std::int64_t operations);
  void count_bytes(Place place, std::size_t bytes);
  [[noreturn]] void too_many(Place place) const;
  Variable* find(std::string_view name);
  Variable& declared(std::string_view name, Place place);
  Variable& declare(std::string_view name, Place place, Variable variable);
  void push_guard(Condition condition);
  void remove_guards(int level);
  bool refresh_condition();  // false: it never holds
  void write_guarded_bit(int bit);
  int guard_bit(std::size_t depth);
  Flow leave(int level, std::size_t guards, std::size_t depth, Flow known);
  void emit(Operation operation, Place place);
  void emit_gate(Operation operation, Place place);
  void emit_measurement(int qubit, int bit, Place place);
  void finish();
  void sort_parameters();

  // -- expressions.cc
  Value evaluate(const Expression& expression);
  Value evaluate_index(const Expression& expression);
  Value element(const Expression& expression);
  const Value* element_of(const Expression& expression, std::size_t& next);
  Value evaluate_call(const Expression& expression);
  Value concatenation(const Expression& expression);
  Value value_of(const Variable& variable) const;
  Value array_of(const Expression& expression, const Type& type, std::size_t level);
  Value initial(const std::vector<Expression>& values, const Type& type, Place place);
  Type type_of(const TypeName& name);
  std::vector<std::int64_t> range(const Expression& expression, std::int64_t size);
  std::vector<int> indices(const Expression& expression, std::int64_t size, bool& single);
  // The places of qubits or classical bits; false: the expression is a value.
  bool places_of(const Expression& expression, Kind kind, std::vector<int>& places, bool& single);
  std::vector<int> qubits_of(const Expression& expression);
  Linear angle_of(const Expression& expression);
  Value measured(const Expression& operand, Place place);

  // -- statements.cc
  Flow execute(const Statement& statement);
  Flow execute_kind(const Statement& statement);
  Flow execute_all(const std::vector<Statement>& statements);
  Flow execute_scope(const std::vector<Statement>& statements);
  void declare_variable(const Statement& statement);
  void declare_register(const Statement& statement, const Type& type, Kind kind);
  void declare_input(const Statement& statement, const Type& type);
  void alias(const Statement& statement);
  void assign(const Statement& statement);
  void set(Variable& variable, Value value, Place place);
  void set_indexed(Variable& variable, const Expression& target, const Value& value);
  void set_element(Value& of, const std::vector<const Expression*>& at, std::size_t level, const Value& value);
  Value mixed(int condition, const Value& yes, const Value& no, Place place);
  Value lasting(Value value);
  void store(const std::vector<int>& places, const Bits& bits);
  void measure(const Statement& statement);
  void measure_into(const Expression& qubits, const std::vector<int>& bits, Place place);
  void reset(const Statement& statement);
  void barrier(const Statement& statement);
  void include(const Statement& statement);

  // -- flow.cc
  Flow if_else(const Statement& statement);
  void guarded(Condition condition, const std::vector<Statement>& body, Condition* after);
  Flow for_loop(const Statement& statement);
  Flow while_loop(const Statement& statement);
  Flow iterate(const std::vector<Statement>& body, std::string_view name, const Value* value, Place place);
  Flow switch_case(const Statement& statement);
  Flow return_value(const Statement& statement);
  Value call(const Statement& subroutine, const std::vector<const Expression*>& arguments, Place place);

  // -- choices.cc
  std::int64_t number_of(const Expression& expression, const char* what, std::int64_t size);
  std::vector<std::pair<std::int64_t, int>> choices(const UnknownNumber& unknown);
  Flow execute_choices(const Statement& statement, const UnknownNumber& unknown);
  Value chosen_element(const Expression& expression, const UnknownNumber& unknown);

  // -- loops.cc
  void repeat(const Statement& statement, int bit);
  void assigned_names(const std::vector<Statement>& statements, std::set<std::string_view>& names) const;
  Value housed(const Value& value, Place place);
  void move_home(const Value& home, const Value& value, std::string_view name, Place place,
                 std::vector<std::pair<int, int>>& moves) const;
  void move_bits(std::vector<std::pair<int, int>> moves);
  void add_jump(OperationKind kind, int label, Place place);
  void keep_left(std::size_t first, int level, std::size_t place);

  // -- gate_calls.cc
  void check_new_name(const Statement& definition);
  void define_gate(Statement statement);
  void define_library(std::string_view file);
  void define_braket();
  std::int64_t check_body(std::vector<Statement>& body, const Statement& definition);
  void check_call(Statement& call, const Statement& definition);
  const Gate* find_gate(const Statement& call);
  void check_numbers(const Gate& gate, const Statement& call, std::size_t qubits) const;
  void gate_call(const Statement& statement);
  std::vector<Operation> operations_of(const Gate& gate, const Statement& call, const std::vector<Linear>& angles,
                                       const std::vector<int>& qubits);
  void expand(const Gate& gate, const std::vector<Linear>& angles, const std::vector<int>& qubits, Place place,
              std::vector<Operation>& out);
  std::size_t controls_of(const Statement& call);
  Operation named(const Gate& gate, const std::vector<Linear>& angles, const std::vector<int>& qubits, Place place);
  void use_known_gate(Gate& gate);

  const ReadOptions& options_;
  Sources sources_;
  Parser parser_;
  Circuit circuit_;
  Logic logic_;
  Arithmetic arithmetic_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::int64_t steps_ = 0;
  std::int64_t until_check_ = 0;
  std::int64_t bytes_ = 0;
  int evaluations_ = 0;  // inside each other

  std::vector<Scope> scopes_{1};
  std::size_t base_ = 0;  // the first scope of the subroutine or gate; those below, but the first, are not visible
  std::vector<Guard> guards_;
  Condition condition_;  // all of them
  std::vector<Loop> loops_;
  std::vector<Call> calls_;
  std::vector<Choice> choices_;
  int levels_ = 0;
  int marks_ = 0;
  int repeated_ = 0;                     // loops around, whose end depends on measurements
  std::vector<std::int8_t> known_bits_;  // of the classical bits: 0, 1, or -1 if it depends on measurements
  std::vector<bool> fresh_;              // of the qubits: whether it is |0> at this point
  bool has_braket_ = false;
  bool hardware_ = false;       // qubits such as $0
  std::vector<int> bit_terms_;  // classical bits on which angles depend
  std::vector<std::string_view> outputs_;

  std::vector<std::unique_ptr<Statement>> definitions_;
  std::vector<std::unique_ptr<Gate>> all_gates_;
  std::unordered_map<std::string_view, const Gate*> gates_;
  std::unordered_map<std::string_view, const Statement*> subroutines_;
  std::unordered_set<std::string_view> defined_;  // names of gates and subroutines of the program
  std::vector<Operation>* gate_body_ = nullptr;   // where the operations of a gate go while its body is read
};

}  // namespace onehop::quantum::language
