// The syntax tree of one statement. Names are parts of the text, which outlives the tree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "quantum/language/text/lexer.h"
#include "quantum/language/text/source.h"

namespace onehop::quantum::language {

struct TypeName;

enum class ExpressionKind : std::uint8_t {
  integer,  // `integer`
  real,     // `number`
  imaginary,
  duration,  // `number` of seconds; with `text` "dt" of samples
  boolean,
  bits,  // a text of 0 and 1; if `integer` is 1, of decimal digits
  name,
  hardware,  // a physical qubit, `integer`
  unary,
  binary,
  call,   // `text` of `parts`
  cast,   // `type` of the only part
  index,  // the first part, indexed by the others
  set,    // {parts}: the values of an index or of a loop, or an array
  range,  // start, step, end; `integer` says with bits 1, 2, 4 which ones there are
  measure,
};

struct Expression {
  ExpressionKind kind = ExpressionKind::integer;
  Symbol symbol = 0;
  Place place;
  std::string_view text;
  std::int64_t integer = 0;
  double number = 0;
  std::vector<Expression> parts;
  std::unique_ptr<TypeName> type;
};

enum class TypeKind : std::uint8_t { none, bit, boolean, integer, natural, real, angle, complex, duration, qubit };

// A type as it is written: `size` is empty without one.
struct TypeName {
  TypeKind kind = TypeKind::none;
  Place place;
  std::vector<Expression> size;  // none or one
  bool is_array = false;
  std::vector<Expression> dimensions;  // of an array; empty with `#dim`
  bool is_mutable = false;             // of an argument
};

// What is indexed by an expression and its parts: `a` of a[1][2].
[[nodiscard]] inline const Expression& root_of(const Expression& expression) {
  const Expression* found = &expression;
  while (found->kind == ExpressionKind::index) found = &found->parts[0];
  return *found;
}

[[nodiscard]] inline bool has_call(const Expression& expression) {
  return expression.kind == ExpressionKind::call || std::ranges::any_of(expression.parts, has_call);
}

enum class ModifierKind : std::uint8_t { control, negative_control, inverse, power };

struct Modifier {
  ModifierKind kind = ModifierKind::inverse;
  Place place;
  std::vector<Expression> argument;  // none or one
};

struct Parameter {
  std::string_view name;
  Place place;
  TypeName type;
};

enum class StatementKind : std::uint8_t {
  none,
  declare,  // `type` `name` = values[0]; `flag` says const
  input,
  output,
  alias,       // let `name` = values[0]
  assign,      // targets[0] `symbol` values[0]
  expression,  // values[0]
  gate_call,   // modifiers, `name`, values: angles, targets: qubits
  gate,        // a definition: parameters without types, then `names` of qubits
  opaque,
  subroutine,
  measure,  // targets[0] -> targets[1], if there is one
  reset,
  barrier,
  delay,
  if_else,      // values[0], body, otherwise
  for_loop,     // `type` `name` in values[0]
  while_loop,   // values[0]
  switch_case,  // values[0], cases
  block,
  box,
  break_loop,
  continue_loop,
  return_value,  // none or one of values
  end,
  include,  // the file `name`
};

struct Gate;
struct Case;

struct Statement {
  StatementKind kind = StatementKind::none;
  Place place;
  std::string_view name;
  Place name_place;
  Symbol symbol = 0;
  bool flag = false;
  std::unique_ptr<TypeName> type;
  std::vector<Modifier> modifiers;
  std::vector<Expression> values;
  std::vector<Expression> targets;
  std::vector<Parameter> parameters;
  std::vector<Parameter> names;
  std::vector<Statement> body;
  std::vector<Statement> otherwise;
  std::vector<Case> cases;
  const Gate* gate = nullptr;  // of a call inside a definition
};

struct Case {
  std::vector<Expression> labels;  // none: the default
  std::vector<Statement> body;
};

}  // namespace onehop::quantum::language
