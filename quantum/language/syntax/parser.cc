#include "quantum/language/syntax/parser.h"

#include <algorithm>
#include <array>
#include <utility>

namespace onehop::quantum::language {
namespace {

constexpr int deepest = 200;  // statements in statements

constexpr std::array assignments = {symbol("="),  symbol("+="),  symbol("-="),  symbol("*="),
                                    symbol("/="), symbol("&="),  symbol("|="),  symbol("^="),
                                    symbol("%="), symbol("<<="), symbol(">>="), symbol("**=")};

}  // namespace

Parser::Parser(Sources& sources) : sources_(sources) {
  include(0);
  read_version();
}

void Parser::include(int file) {
  inputs_.push_back({Lexer(sources_, file), {}, std::nullopt});
  inputs_.back().now = inputs_.back().lexer.next();
}

void Parser::read_version() {
  if (now().kind == TokenKind::end) fail({0, 0}, "expected an OpenQASM program, found nothing");
  if (!now().is("OPENQASM")) {
    Lexer all(sources_, 0);
    for (Token one = all.next(); one.kind != TokenKind::end; one = all.next()) {
      if (one.is("qreg")) version_ = 2;
    }
    return;
  }
  take();
  const Token number = take();
  const std::size_t point = std::min(number.text.find('.'), number.text.size());
  const std::string major(number.text.substr(0, point));
  if (number.kind != TokenKind::integer && number.kind != TokenKind::real) {
    fail(number.place, "expected the version 2.0 or 3.0");
  }
  if (major != "2" && major != "3") fail(number.place, "expected OpenQASM 2 or 3, found version " + major);
  if (const std::size_t digits = number.text.size() - point; digits > 10) {
    fail({0, number.place.byte + static_cast<std::uint32_t>(point) + 1},
         "expected OpenQASM 2.0 or 3.0, found a minor version of " + std::to_string(digits - 1) + " digits");
  }
  version_ = major == "2" ? 2 : 3;
  expect(symbol(";"), ";");
}

void Parser::unexpected(const std::string& expected) const {
  const Token& found = now();
  const std::string word =
      found.kind == TokenKind::end ? "the end of the file" : "'" + std::string(found.text.substr(0, 40)) + "'";
  fail(found.place, "expected " + expected + ", found " + word);
}

const Token& Parser::ahead() {
  Input& input = inputs_.back();
  if (!input.ahead) input.ahead = input.lexer.next();
  return *input.ahead;
}

Token Parser::take() {
  Input& input = inputs_.back();
  const Token taken = input.now;
  input.now = input.ahead ? *input.ahead : input.lexer.next();
  input.ahead.reset();
  return taken;
}

bool Parser::accept(Symbol symbol) {
  if (!now().is(symbol)) return false;
  take();
  return true;
}

bool Parser::accept(std::string_view name) {
  if (!now().is(name)) return false;
  take();
  return true;
}

void Parser::expect(Symbol symbol, const char* characters) {
  if (!accept(symbol)) unexpected("'" + std::string(characters) + "'");
}

Token Parser::expect_name(const char* what) {
  if (now().kind != TokenKind::name) unexpected(what);
  return take();
}

std::optional<Statement> Parser::next() {
  while (now().kind == TokenKind::end) {
    if (inputs_.size() == 1) return std::nullopt;
    inputs_.pop_back();
  }
  return statement();
}

Statement Parser::statement() {
  Input& input = inputs_.back();
  while (now().is(symbol("@")) || now().is(symbol("#")) || now().is("pragma")) {  // annotations and pragmas
    if (now().is("pragma") && version_ == 2) break;
    if (!input.ahead) {
      const Token line = input.lexer.rest_of_line();
      for (const std::string_view one : {"braket unitary", "braket noise"}) {
        if (line.text.find(one) == std::string_view::npos) continue;
        fail(now().place, "expected pragmas that may be left out, found '" + std::string(one) + "'; define a gate");
      }
    }
    input.ahead.reset();
    input.now = input.lexer.next();
    if (now().kind == TokenKind::end) return {};
  }
  begin_ = now().place;
  operators_ = 0;
  if (++nested_ > deepest) fail(begin_, "expected at most 200 statements inside each other, found more");
  Statement made;
  made.place = begin_;
  if (now().is(symbol("{"))) {
    made.kind = StatementKind::block;
    made.body = block();
  } else if (!accept(symbol(";"))) {
    if (now().kind != TokenKind::name && now().kind != TokenKind::hardware) unexpected("a statement");
    bool found = true;
    made = by_keyword(found);
    if (!found) made = call_or_assignment(std::move(made));
  }
  --nested_;
  return made;
}

Statement Parser::by_keyword(bool& found) {
  Statement made;
  made.place = now().place;
  const std::string_view word = now().text;
  made.name_place = made.place;
  const auto simple = [&](StatementKind kind, bool with_operands) {
    take();
    made.kind = kind;
    if (with_operands && !now().is(symbol(";"))) made.targets = operands();
    expect(symbol(";"), ";");
  };
  if (word == "OPENQASM") fail(made.place, "expected the version line at the beginning, found another one");
  if (word == "include") {
    take();
    if (now().kind != TokenKind::text) unexpected("the name of a file in quotes");
    made.name_place = now().place;
    made.name = take().text;
    made.kind = StatementKind::include;
    expect(symbol(";"), ";");
  } else if (word == "qreg" || word == "creg" || (version_ == 3 && word == "qubit")) {
    made = qubits(std::move(made));
  } else if (word == "gate" || word == "opaque") {
    made = gate_definition(std::move(made), word == "opaque");
  } else if (word == "measure") {
    made = measurement(std::move(made));
  } else if (word == "reset") {
    simple(StatementKind::reset, true);
  } else if (word == "barrier") {
    simple(StatementKind::barrier, true);
  } else if (word == "if") {
    made = if_else(std::move(made));
  } else {
    found = version_ == 3 && three_only(made);
  }
  return made;
}

// Statements of OpenQASM 3 only; false: none of them.
bool Parser::three_only(Statement& made) {
  refuse_keyword();
  const std::string_view word = now().text;
  const auto simple = [&](StatementKind kind) {
    take();
    made.kind = kind;
    expect(symbol(";"), ";");
  };
  if (word == "const") {
    take();
    made = declaration(std::move(made), true);
  } else if (word == "input" || word == "output") {
    take();
    made = declaration(std::move(made), false);
    made.kind = word == "input" ? StatementKind::input : StatementKind::output;
  } else if (begins_type()) {
    made = declaration(std::move(made), false);
  } else if (word == "let") {
    take();
    made.kind = StatementKind::alias;
    made.name_place = now().place;
    made.name = expect_name("a name").text;
    expect(symbol("="), "=");
    made.values.push_back(value());
    expect(symbol(";"), ";");
  } else if (word == "def") {
    made = subroutine(std::move(made));
  } else if (word == "for") {
    made = for_loop(std::move(made));
  } else if (word == "while") {
    take();
    made.kind = StatementKind::while_loop;
    made.values.push_back(in_parentheses());
    made.body = body();
  } else if (word == "switch") {
    made = switch_case(std::move(made));
  } else if (word == "break") {
    simple(StatementKind::break_loop);
  } else if (word == "continue") {
    simple(StatementKind::continue_loop);
  } else if (word == "end") {
    simple(StatementKind::end);
  } else if (word == "return") {
    take();
    made.kind = StatementKind::return_value;
    if (!now().is(symbol(";"))) made.values.push_back(value());
    expect(symbol(";"), ";");
  } else if (word == "box") {
    take();
    made.kind = StatementKind::box;
    if (accept(symbol("["))) {
      made.values.push_back(expression());
      expect(symbol("]"), "]");
    }
    made.body = block();
  } else if (word == "delay" || word == "nop") {
    take();
    made.kind = StatementKind::delay;
    if (accept(symbol("["))) {
      made.values.push_back(expression());
      expect(symbol("]"), "]");
    }
    if (!now().is(symbol(";"))) made.targets = operands();
    expect(symbol(";"), ";");
  } else {
    return false;
  }
  return true;
}

std::vector<Statement> Parser::block() {
  std::vector<Statement> found;
  expect(symbol("{"), "{");
  while (!accept(symbol("}"))) {
    if (now().kind == TokenKind::end) unexpected("'}'");
    if (Statement one = statement(); one.kind != StatementKind::none) found.push_back(std::move(one));
  }
  return found;
}

std::vector<Statement> Parser::body() {
  if (now().is(symbol("{"))) return block();
  std::vector<Statement> found;
  found.push_back(statement());
  return found;
}

Statement Parser::measurement(Statement made) {
  take();
  made.kind = StatementKind::measure;
  made.targets.push_back(operand());
  if (accept(symbol("->"))) made.targets.push_back(operand());
  expect(symbol(";"), ";");
  return made;
}

Statement Parser::if_else(Statement made) {
  take();
  made.kind = StatementKind::if_else;
  compares_ = version_ == 2;
  made.values.push_back(in_parentheses());
  compares_ = false;
  made.body = body();
  if (version_ == 3 && accept("else")) made.otherwise = body();
  return made;
}

Statement Parser::for_loop(Statement made) {
  take();
  made.kind = StatementKind::for_loop;
  if (begins_type()) made.type = std::make_unique<TypeName>(type());
  made.name_place = now().place;
  made.name = expect_name("the name of the loop's variable").text;
  if (!accept("in")) unexpected("'in'");
  if (now().is(symbol("{"))) {
    made.values.push_back(set());
  } else if (accept(symbol("["))) {
    made.values.push_back(range_or_expression());
    expect(symbol("]"), "]");
  } else {
    made.values.push_back(value());
  }
  made.body = body();
  return made;
}

Statement Parser::switch_case(Statement made) {
  take();
  made.kind = StatementKind::switch_case;
  made.values.push_back(in_parentheses());
  expect(symbol("{"), "{");
  while (!accept(symbol("}"))) {
    Case one;
    if (accept("case")) {
      do {
        one.labels.push_back(expression());
      } while (accept(symbol(",")));
    } else if (!accept("default")) {
      unexpected("'case' or 'default'");
    }
    accept(symbol(":"));
    one.body = block();
    made.cases.push_back(std::move(one));
  }
  return made;
}

void Parser::gate_call(Statement& made) {
  made.kind = StatementKind::gate_call;
  if (!now().is(symbol(";"))) made.targets = operands();
  expect(symbol(";"), ";");
}

Statement Parser::call_or_assignment(Statement made) {
  modifiers(made);
  made.name_place = now().place;
  if (!made.modifiers.empty()) {
    made.name = expect_name("the name of a gate").text;
    if (accept(symbol("("))) made.values = list(symbol(")"), ")");
    gate_call(made);
    return made;
  }
  if (now().kind == TokenKind::name && !ahead().is(symbol("[")) && !ahead().is(symbol("("))) {
    const Token name = take();
    if (now().kind == TokenKind::name || now().kind == TokenKind::hardware || now().is(symbol(";"))) {
      made.name = name.text;
      gate_call(made);
      return made;
    }
    Expression target = make(ExpressionKind::name, name.place);
    target.text = name.text;
    return assignment(std::move(made), std::move(target));
  }
  const Token name = now();
  Expression target = postfix();
  if (target.kind == ExpressionKind::call &&
      (now().kind == TokenKind::name || now().kind == TokenKind::hardware || now().is(symbol(";")))) {
    made.name = name.text;
    made.values = std::move(target.parts);
    gate_call(made);
    return made;
  }
  return assignment(std::move(made), std::move(target));
}

Statement Parser::assignment(Statement made, Expression target) {
  const Token token = now();
  if (token.kind != TokenKind::symbol || std::ranges::find(assignments, token.symbol) == assignments.end()) {
    unexpected(target.kind == ExpressionKind::name ? "qubits of the gate '" + std::string(target.text) + "'"
                                                   : "an assignment or ';'");
  }
  take();
  made.kind = StatementKind::assign;
  made.symbol = token.symbol == symbol("=") ? 0 : token.symbol >> 8;  // the operator without its =
  made.targets.push_back(std::move(target));
  made.values.push_back(value());
  expect(symbol(";"), ";");
  return made;
}

Expression Parser::operand() {
  if (now().kind != TokenKind::name && now().kind != TokenKind::hardware) unexpected("a qubit or a register");
  return postfix();
}

std::vector<Expression> Parser::operands() {
  std::vector<Expression> found;
  do {
    found.push_back(operand());
  } while (accept(symbol(",")));
  return found;
}

}  // namespace onehop::quantum::language
