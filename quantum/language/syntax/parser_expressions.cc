#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "quantum/language/syntax/parser.h"
#include "src/base/text.h"

namespace onehop::quantum::language {
namespace {

constexpr int most_operators = 2000;

struct Binary {
  Symbol symbol;
  int precedence;
};
constexpr std::array binaries = {
    Binary{symbol("||"), 1}, Binary{symbol("&&"), 2}, Binary{symbol("|"), 3},  Binary{symbol("^"), 4},
    Binary{symbol("&"), 5},  Binary{symbol("=="), 6}, Binary{symbol("!="), 6}, Binary{symbol("<"), 7},
    Binary{symbol("<="), 7}, Binary{symbol(">"), 7},  Binary{symbol(">="), 7}, Binary{symbol("<<"), 8},
    Binary{symbol(">>"), 8}, Binary{symbol("+"), 9},  Binary{symbol("-"), 9},  Binary{symbol("*"), 10},
    Binary{symbol("/"), 10}, Binary{symbol("%"), 10}, Binary{symbol("**"), 12}};
constexpr int unary_precedence = 11;

std::string plain(std::string_view digits) {
  std::string found;
  for (const char c : digits) {
    if (c != '_') found += c;
  }
  return found;
}

int base_of(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  switch (digits[1]) {
    case 'x':
    case 'X':
      return 16;
    case 'o':
    case 'O':
      return 8;
    case 'b':
    case 'B':
      return 2;
    default:
      return 10;
  }
}

}  // namespace

Expression Parser::make(ExpressionKind kind, Place place) {
  Expression made;
  made.kind = kind;
  made.place = place;
  return made;
}

Expression Parser::combine(Symbol symbol, Place place, Expression left, Expression right) {
  Expression made = make(ExpressionKind::binary, place);
  made.symbol = symbol;
  made.parts.push_back(std::move(left));
  made.parts.push_back(std::move(right));
  return made;
}

void Parser::count_operator() {
  if (++operators_ > most_operators) fail(begin_, "expected at most 2000 operators in a statement, found more");
}

Expression Parser::expression(int least) {
  Expression left = unary();
  for (;;) {
    if (now().kind != TokenKind::symbol) return left;
    Symbol operation = now().symbol;
    if (version_ == 2 && operation == symbol("^")) operation = symbol("**");
    if (version_ == 2 && operation == symbol("++")) operation = symbol("+");  // the second one is a sign
    int precedence = 0;
    for (const Binary& one : binaries) precedence = one.symbol == operation ? one.precedence : precedence;
    if (operation == symbol("++") || precedence == 0 || precedence < least) return left;
    count_operator();
    const Place place = take().place;
    // A power has its right side first.
    left = combine(operation, place, std::move(left), expression(precedence == 12 ? precedence : precedence + 1));
  }
}

Expression Parser::unary() {
  const Token token = now();
  if (token.is(symbol("+")) || (version_ == 2 && token.is(symbol("++")))) {
    count_operator();
    take();
    return unary();
  }
  if (!token.is(symbol("-")) && !token.is(symbol("!")) && !token.is(symbol("~"))) return postfix();
  count_operator();
  take();
  Expression made = make(ExpressionKind::unary, token.place);
  made.symbol = token.symbol;
  made.parts.push_back(expression(unary_precedence));
  return made;
}

Expression Parser::postfix() {
  Expression found = primary();
  while (now().is(symbol("["))) found = index(std::move(found));
  return found;
}

Expression Parser::index(Expression of) {
  count_operator();
  Expression made = make(ExpressionKind::index, of.place);
  made.parts.push_back(std::move(of));
  expect(symbol("["), "[");
  do {
    made.parts.push_back(now().is(symbol("{")) ? set() : range_or_expression());
  } while (accept(symbol(",")));
  expect(symbol("]"), "]");
  return made;
}

Expression Parser::range_or_expression() {
  const Place place = now().place;
  std::vector<Expression> parts(3);
  int given = 0;
  int at = 0;
  const auto ends = [&] { return now().is(symbol("]")) || now().is(symbol(",")); };
  for (;;) {
    if (!now().is(symbol(":")) && !ends()) {
      parts[static_cast<std::size_t>(at)] = expression();
      given |= 1 << at;
    }
    if (!now().is(symbol(":"))) break;
    if (at == 2) unexpected("a range start:end or start:step:end");
    take();
    ++at;
  }
  if (at == 0) {
    if (given == 0) unexpected("an index");
    return std::move(parts[0]);
  }
  Expression made = make(ExpressionKind::range, place);
  if (at == 1) {
    std::swap(parts[1], parts[2]);
    given = (given & 1) | (given & 2) << 1;
  }
  made.integer = given;
  made.parts = std::move(parts);
  return made;
}

Expression Parser::set() {
  Expression made = make(ExpressionKind::set, now().place);
  expect(symbol("{"), "{");
  while (!accept(symbol("}"))) {
    made.parts.push_back(now().is(symbol("{")) ? set() : expression());
    if (!accept(symbol(",")) && !now().is(symbol("}"))) unexpected("',' or '}'");
  }
  return made;
}

// The right side of a declaration or an assignment: a measurement, an array, or parts joined by ++.
Expression Parser::value() {
  if (now().is(symbol("{"))) return set();
  if (now().is("measure")) {
    Expression made = make(ExpressionKind::measure, take().place);
    made.parts.push_back(operand());
    return made;
  }
  Expression found = expression();
  while (now().is(symbol("++"))) {
    count_operator();
    const Place place = take().place;
    found = combine(symbol("++"), place, std::move(found), expression());
  }
  return found;
}

std::vector<Expression> Parser::list(Symbol close, const char* characters) {
  std::vector<Expression> found;
  while (!now().is(close)) {
    found.push_back(now().is("measure") ? value() : expression());
    if (!accept(symbol(","))) break;
  }
  expect(close, characters);
  return found;
}

Expression Parser::in_parentheses() {
  expect(symbol("("), "(");
  Expression inside = expression();
  expect(symbol(")"), ")");
  return inside;
}

Expression Parser::primary() {
  const Token token = now();
  if (token.is(symbol("("))) return in_parentheses();
  if (token.kind == TokenKind::name) {
    if (version_ == 3 && begins_type()) {
      Expression made = make(ExpressionKind::cast, token.place);
      made.type = std::make_unique<TypeName>(type());
      made.parts.push_back(in_parentheses());
      return made;
    }
    take();
    if (token.text == "true" || token.text == "false") {
      Expression made = make(ExpressionKind::boolean, token.place);
      made.integer = token.text == "true" ? 1 : 0;
      return made;
    }
    Expression made = make(ExpressionKind::name, token.place);
    made.text = token.text;
    if (accept(symbol("("))) {
      made.kind = ExpressionKind::call;
      made.parts = list(symbol(")"), ")");
    }
    return made;
  }
  if (token.kind == TokenKind::end || token.kind == TokenKind::symbol) unexpected("an expression");
  take();
  return literal(token);
}

Expression Parser::literal(const Token& token) {
  const std::string digits = plain(token.text);
  Expression made = make(ExpressionKind::integer, token.place);
  switch (token.kind) {
    case TokenKind::integer:
    case TokenKind::hardware: {
      const int base = base_of(digits);
      const char* const begin = digits.data() + (base == 10 ? 0 : 2);
      const char* const end = digits.data() + digits.size();
      const auto read = std::from_chars(begin, end, made.integer, base);
      const bool large = read.ec == std::errc::result_out_of_range;
      const bool decimal = token.kind == TokenKind::integer && base == 10 && read.ptr == end;
      if (large && decimal && compares_) {
        made.kind = ExpressionKind::bits;
        made.text = token.text;
        made.integer = 1;
        return made;
      }
      if (large) {
        fail(token.place, "expected an integer below 2^63, found one of " + std::to_string(end - begin) + " digits");
      }
      if (read.ec != std::errc() || read.ptr != end) fail(token.place, "expected a number, found '" + digits + "'");
      made.number = static_cast<double>(made.integer);
      if (token.kind == TokenKind::hardware) made.kind = ExpressionKind::hardware;
      return made;
    }
    case TokenKind::real:
    case TokenKind::imaginary:
    case TokenKind::duration: {
      char* end = nullptr;
      made.number = base::decimal_number(digits.c_str(), &end);
      if (token.kind == TokenKind::real) made.kind = ExpressionKind::real;
      if (token.kind == TokenKind::imaginary) made.kind = ExpressionKind::imaginary;
      if (token.kind != TokenKind::duration) return made;
      made.kind = ExpressionKind::duration;
      const std::string unit = digits.substr(digits.find_last_of("0123456789. \t") + 1);
      if (unit == "dt") made.text = "dt";
      made.number *= unit == "ns" ? 1e-9 : unit == "ms" ? 1e-3 : unit == "s" || unit == "dt" ? 1.0 : 1e-6;
      return made;
    }
    case TokenKind::text:
      made.kind = ExpressionKind::bits;
      made.text = token.text;
      for (const char c : token.text) {
        if (c != '0' && c != '1' && c != '_') fail(token.place, "expected a text of 0 and 1, found another character");
      }
      return made;
    default:
      fail(token.place, "expected an expression, found '" + std::string(token.text) + "'");
  }
}

void Parser::modifiers(Statement& made) {
  constexpr std::array<std::string_view, 4> words = {"ctrl", "negctrl", "inv", "pow"};
  while (version_ == 3) {
    const auto* const word = std::ranges::find(words, now().text);
    if (now().kind != TokenKind::name || word == words.end()) return;
    if (!ahead().is(symbol("@")) && !ahead().is(symbol("("))) return;
    count_operator();
    Modifier one;
    one.kind = static_cast<ModifierKind>(word - words.begin());
    one.place = take().place;
    if (accept(symbol("("))) {
      one.argument.push_back(expression());
      expect(symbol(")"), ")");
    }
    expect(symbol("@"), "@");
    made.modifiers.push_back(std::move(one));
  }
}

}  // namespace onehop::quantum::language
