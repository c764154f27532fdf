#include "quantum/language/text/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace onehop::quantum::language {
namespace {

constexpr int deepest = 200;
constexpr std::size_t longest_number = 300;

constexpr std::array<std::string_view, 22> long_symbols = {
    "<<=", ">>=", "**=", "->", "==", "!=", "<=", ">=", "&&", "||", "++",
    "<<",  ">>",  "**",  "+=", "-=", "*=", "/=", "&=", "|=", "^=", "%="};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool continues_name(char c) { return begins_name(c) || is_digit(c); }

}  // namespace

void Lexer::fail(std::size_t byte, const std::string& message) const {
  sources_->fail({file_, static_cast<std::uint32_t>(byte)}, message);
}

Token Lexer::token(TokenKind kind, std::size_t begin, std::size_t end) {
  byte_ = end;
  return {kind, 0, {file_, static_cast<std::uint32_t>(begin)}, text_.substr(begin, end - begin)};
}

void Lexer::skip_blanks() {
  for (;;) {
    const char c = at(byte_);
    if (byte_ < text_.size() && (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v')) {
      ++byte_;
    } else if (c == '/' && at(byte_ + 1) == '/') {
      byte_ = std::min(text_.find('\n', byte_), text_.size());
    } else if (c == '/' && at(byte_ + 1) == '*') {
      const std::size_t end = text_.find("*/", byte_ + 2);
      if (end == std::string_view::npos) fail(byte_, "the comment that begins here has no end; expected */");
      byte_ = end + 2;
    } else {
      return;
    }
  }
}

Token Lexer::next() {
  skip_blanks();
  if (byte_ >= text_.size()) return token(TokenKind::end, text_.size(), text_.size());
  const char c = text_[byte_];
  if (begins_name(c)) {
    std::size_t end = byte_ + 1;
    while (continues_name(at(end))) ++end;
    return token(TokenKind::name, byte_, end);
  }
  if (is_digit(c) || (c == '.' && is_digit(at(byte_ + 1)))) return number();
  if (c == '"' || c == '\'') return quoted();
  if (c == '$' && is_digit(at(byte_ + 1))) {
    std::size_t end = byte_ + 1;
    while (is_digit(at(end))) ++end;
    Token found = token(TokenKind::hardware, byte_, end);
    found.text.remove_prefix(1);
    return found;
  }
  return operation();
}

Token Lexer::number() {
  const std::size_t begin = byte_;
  std::size_t end = begin;
  bool real = false;
  const char base = at(begin + 1);
  if (at(begin) == '0' && std::string_view("xXbBoO").find(base) != std::string_view::npos && base != '\0') {
    end += 2;
    while (std::isxdigit(static_cast<unsigned char>(at(end))) != 0 || at(end) == '_') ++end;
  } else {
    const auto digits = [&] {
      while (is_digit(at(end)) || at(end) == '_') ++end;
    };
    digits();
    if (at(end) == '.') {
      real = true;
      ++end;
      digits();
    }
    const std::size_t sign = end + 1 + (at(end + 1) == '+' || at(end + 1) == '-' ? 1U : 0U);
    if ((at(end) == 'e' || at(end) == 'E') && is_digit(at(sign))) {
      real = true;
      end = sign;
      digits();
    }
  }
  if (end - begin >= longest_number) {
    fail(begin, "expected a number of fewer than 300 digits, found one of " + std::to_string(end - begin));
  }
  Token found = token(real ? TokenKind::real : TokenKind::integer, begin, end);
  std::size_t unit = end;
  while (at(unit) == ' ' || at(unit) == '\t') ++unit;
  std::size_t stop = unit;
  while (continues_name(at(stop))) ++stop;
  const std::string_view suffix = text_.substr(unit, stop - unit);
  constexpr std::array<std::string_view, 7> units = {"im", "dt", "ns", "us", "\xC2\xB5s", "ms", "s"};
  if (!suffix.empty() && std::ranges::find(units, suffix) != units.end()) {
    found = token(suffix == "im" ? TokenKind::imaginary : TokenKind::duration, begin, stop);
  } else if (unit == end && stop > unit) {
    fail(begin, "expected a number, found '" +
                    std::string(text_.substr(begin, std::min<std::size_t>(stop - begin, 40))) + "'");
  }
  return found;
}

Token Lexer::quoted() {
  const std::size_t end = text_.find_first_of(std::string{text_[byte_], '\n'}, byte_ + 1);
  if (end == std::string_view::npos || text_[end] == '\n') {
    fail(byte_, "the text that begins here has no end; expected another quote");
  }
  Token found = token(TokenKind::text, byte_, end + 1);
  found.text = found.text.substr(1, found.text.size() - 2);
  return found;
}

Token Lexer::operation() {
  const std::string_view rest = text_.substr(byte_);
  std::size_t length = 1;
  if (std::string_view("[](),;").find(rest[0]) == std::string_view::npos) {  // those are frequent, and begin no other
    for (const std::string_view one : long_symbols) {
      if (rest.starts_with(one)) {
        length = one.size();
        break;
      }
    }
  }
  if (length == 1 && std::string_view("+-*/%^&|~!<>=()[]{},;:.@#").find(rest[0]) == std::string_view::npos) {
    const auto code = static_cast<unsigned>(static_cast<unsigned char>(rest[0]));
    fail(byte_, "expected OpenQASM, found " + (code < ' ' || code == 127 ? "the character " + std::to_string(code)
                                                                         : "'" + std::string(1, rest[0]) + "'"));
  }
  if (length == 1 && std::string_view("([{").find(rest[0]) != std::string_view::npos && ++depth_ > deepest) {
    fail(byte_, "expected at most 200 nested brackets, found 201");
  }
  if (length == 1 && std::string_view(")]}").find(rest[0]) != std::string_view::npos) --depth_;
  Token found = token(TokenKind::symbol, byte_, byte_ + length);
  for (const char c : found.text) found.symbol = found.symbol << 8 | static_cast<unsigned char>(c);
  return found;
}

Token Lexer::rest_of_line() { return token(TokenKind::line, byte_, std::min(text_.find('\n', byte_), text_.size())); }

}  // namespace onehop::quantum::language
