// Reads statements from a text and from the files that it includes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quantum/language/syntax/syntax.h"
#include "quantum/language/text/lexer.h"

namespace onehop::quantum::language {

class Parser {
 public:
  explicit Parser(Sources& sources);
  // Reads a library of OpenQASM 3.
  Parser(Sources& sources, int file) : sources_(sources) { include(file); }

  // The version of OpenQASM, 2 or 3.
  [[nodiscard]] int version() const noexcept { return version_; }
  // Returns the next statement outside of braces; none at the end.
  std::optional<Statement> next();
  // Goes on with an included file, then with the text after its statement.
  void include(int file);

 private:
  struct Input {
    Lexer lexer;
    Token now;
    std::optional<Token> ahead;
  };

  [[noreturn]] void fail(Place place, const std::string& message) const { sources_.fail(place, message); }
  [[noreturn]] void unexpected(const std::string& expected) const;
  [[nodiscard]] const Token& now() const { return inputs_.back().now; }
  const Token& ahead();
  Token take();
  bool accept(Symbol symbol);
  bool accept(std::string_view name);
  void expect(Symbol symbol, const char* characters);
  Token expect_name(const char* what);
  void read_version();
  void count_operator();

  Statement statement();
  Statement by_keyword(bool& found);
  bool three_only(Statement& made);
  std::vector<Statement> block();
  std::vector<Statement> body();
  Statement qubits(Statement made);
  Statement declaration(Statement made, bool constant);
  Statement gate_definition(Statement made, bool opaque);
  Statement subroutine(Statement made);
  Statement measurement(Statement made);
  Statement if_else(Statement made);
  Statement for_loop(Statement made);
  Statement switch_case(Statement made);
  Statement call_or_assignment(Statement made);
  Statement assignment(Statement made, Expression target);
  void gate_call(Statement& made);
  void modifiers(Statement& made);
  void refuse_keyword() const;
  [[nodiscard]] bool begins_type() const;
  TypeName type();
  Parameter argument();
  std::vector<Expression> operands();
  Expression operand();

  Expression expression(int least = 0);
  Expression unary();
  Expression postfix();
  Expression primary();
  Expression in_parentheses();
  Expression literal(const Token& token);
  Expression range_or_expression();
  Expression value();
  Expression set();
  Expression index(Expression of);
  std::vector<Expression> list(Symbol close, const char* characters);
  static Expression make(ExpressionKind kind, Place place);
  static Expression combine(Symbol symbol, Place place, Expression left, Expression right);

  Sources& sources_;
  std::vector<Input> inputs_;
  int version_ = 3;
  int operators_ = 0;      // in the statement
  bool compares_ = false;  // in the condition of an `if` of OpenQASM 2, which registers of any size have
  int nested_ = 0;         // statements in statements
  Place begin_;            // of the statement
};

}  // namespace onehop::quantum::language
