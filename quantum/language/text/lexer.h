// Splits a text into tokens, one at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "quantum/language/text/source.h"

namespace onehop::quantum::language {

// An operator or a bracket: its characters as one number.
using Symbol = std::uint32_t;
consteval Symbol symbol(const char* characters) {
  Symbol value = 0;
  while (*characters != '\0') value = value << 8 | static_cast<unsigned char>(*characters++);
  return value;
}

enum class TokenKind : std::uint8_t {
  end,
  name,     // also keywords
  integer,  // decimal, hexadecimal, octal or binary
  real,
  imaginary,  // with the suffix im
  duration,   // with the suffix dt, ns, us, ms or s
  text,       // in quotes; `text` is what is between them
  hardware,   // a physical qubit, $0; `text` is its number
  symbol,
  line,  // the rest of a line after `pragma` or of an annotation
};

struct Token {
  TokenKind kind = TokenKind::end;
  Symbol symbol = 0;
  Place place;
  std::string_view text;

  [[nodiscard]] bool is(Symbol one) const noexcept { return kind == TokenKind::symbol && symbol == one; }
  [[nodiscard]] bool is(std::string_view name) const noexcept { return kind == TokenKind::name && text == name; }
};

class Lexer {
 public:
  Lexer(const Sources& sources, int file) : sources_(&sources), text_(sources.text(file)), file_(file) {}
  // Returns the next token. Throws BadInput for characters that no token has, comments and texts without an end,
  // numbers of too many digits and too many nested brackets.
  Token next();
  // Returns the rest of the line.
  Token rest_of_line();

 private:
  [[noreturn]] void fail(std::size_t byte, const std::string& message) const;
  [[nodiscard]] char at(std::size_t byte) const { return byte < text_.size() ? text_[byte] : '\0'; }
  [[nodiscard]] Token token(TokenKind kind, std::size_t begin, std::size_t end);
  void skip_blanks();
  [[nodiscard]] Token number();
  [[nodiscard]] Token operation();
  [[nodiscard]] Token quoted();

  const Sources* sources_;
  std::string_view text_;
  int file_;
  std::size_t byte_ = 0;
  int depth_ = 0;  // of brackets
};

}  // namespace onehop::quantum::language
