// Declarations, types and definitions.
#include <algorithm>
#include <array>
#include <utility>

#include "quantum/language/syntax/parser.h"

namespace onehop::quantum::language {
namespace {

struct Refusal {
  std::string_view keyword;
  const char* advice;
};
// What needs more than a program: names of other parts of a machine.
constexpr std::array refusals = {
    Refusal{"extern", "an extern function; write its values where they are used"},
    Refusal{"defcal", "a calibration (defcal); leave it out"},
    Refusal{"cal", "a calibration (cal); leave it out"},
    Refusal{"defcalgrammar", "a calibration (defcalgrammar); leave it out"},
    Refusal{"stretch", "a stretch; write a duration"},
    Refusal{"port", "a port of a machine; leave it out"},
    Refusal{"frame", "a frame of a machine; leave it out"},
    Refusal{"waveform", "a waveform; leave it out"},
};
constexpr std::array<std::string_view, 13> type_names = {"bit",      "bool",    "int",   "uint",     "float",
                                                         "angle",    "complex", "array", "duration", "qubit",
                                                         "readonly", "mutable", "creg"};

}  // namespace

Statement Parser::qubits(Statement made) {
  const Token word = take();
  made.kind = StatementKind::declare;
  made.type = std::make_unique<TypeName>();
  made.type->kind = word.text == "creg" ? TypeKind::bit : TypeKind::qubit;
  made.type->place = word.place;
  const auto size = [&] {
    if (!accept(symbol("["))) return;
    made.type->size.push_back(expression());
    expect(symbol("]"), "]");
  };
  if (word.text == "qubit") size();
  made.name_place = now().place;
  made.name = expect_name("the name of a register").text;
  if (word.text != "qubit") size();
  if (word.text == "creg" && accept(symbol("="))) made.values.push_back(value());
  expect(symbol(";"), ";");
  return made;
}

Statement Parser::declaration(Statement made, bool constant) {
  made.kind = StatementKind::declare;
  made.flag = constant;
  made.type = std::make_unique<TypeName>(type());
  made.name_place = now().place;
  made.name = expect_name("a name").text;
  if (accept(symbol("="))) made.values.push_back(value());
  expect(symbol(";"), ";");
  return made;
}

Statement Parser::gate_definition(Statement made, bool opaque) {
  take();
  made.kind = opaque ? StatementKind::opaque : StatementKind::gate;
  made.name_place = now().place;
  made.name = expect_name("the name of a gate").text;
  const auto names = [&](std::vector<Parameter>& into) {
    while (now().kind == TokenKind::name) {
      const Token token = take();
      into.push_back({token.text, token.place, {}});
      if (!accept(symbol(","))) break;
    }
  };
  if (accept(symbol("("))) {
    names(made.parameters);
    expect(symbol(")"), ")");
  }
  names(made.names);
  if (opaque) {
    expect(symbol(";"), ";");
  } else {
    made.body = block();
  }
  return made;
}

Parameter Parser::argument() {
  const bool old = now().is("creg") || now().is("qreg");
  TypeName kind = type();
  const Token name = expect_name("the name of an argument");
  if (old && accept(symbol("["))) {
    kind.size.push_back(expression());
    expect(symbol("]"), "]");
  }
  return {name.text, name.place, std::move(kind)};
}

Statement Parser::subroutine(Statement made) {
  take();
  made.kind = StatementKind::subroutine;
  made.name_place = now().place;
  made.name = expect_name("the name of a subroutine").text;
  expect(symbol("("), "(");
  while (!now().is(symbol(")"))) {
    made.parameters.push_back(argument());
    if (!accept(symbol(","))) break;
  }
  expect(symbol(")"), ")");
  if (accept(symbol("->"))) made.type = std::make_unique<TypeName>(type());
  made.body = block();
  return made;
}

bool Parser::begins_type() const {
  if (now().kind != TokenKind::name) return false;
  return now().text == "qreg" || std::ranges::find(type_names, now().text) != type_names.end();
}

TypeName Parser::type() {
  TypeName made;
  made.place = now().place;
  refuse_keyword();
  if (now().is("readonly") || now().is("mutable")) made.is_mutable = take().text == "mutable";
  constexpr std::array<std::string_view, 9> words = {"bit",   "bool",    "int",      "uint", "float",
                                                     "angle", "complex", "duration", "qubit"};
  const Token word = expect_name("a type");
  if (word.text == "array") {
    expect(symbol("["), "[");
    TypeName of = type();
    made.kind = of.kind;
    made.size = std::move(of.size);
    made.is_array = true;
    expect(symbol(","), ",");
    if (accept(symbol("#"))) {
      take();
      expect(symbol("="), "=");
      expression();
    } else {
      do {
        made.dimensions.push_back(expression());
      } while (accept(symbol(",")));
    }
    expect(symbol("]"), "]");
    return made;
  }
  const std::string_view name = word.text == "creg" ? "bit" : word.text == "qreg" ? "qubit" : word.text;
  const auto* const found = std::ranges::find(words, name);
  if (found == words.end()) fail(word.place, "expected a type, found '" + std::string(word.text) + "'");
  made.kind = static_cast<TypeKind>(found - words.begin() + 1);
  if (!accept(symbol("["))) return made;
  if (made.kind == TypeKind::complex) {
    type();
  } else {
    made.size.push_back(expression());
  }
  expect(symbol("]"), "]");
  return made;
}

void Parser::refuse_keyword() const {
  for (const Refusal& one : refusals) {
    if (now().is(one.keyword)) {
      fail(now().place, "expected gates, measurements and classical values, found " + std::string(one.advice));
    }
  }
}

}  // namespace onehop::quantum::language
