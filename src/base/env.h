// The environment variables of onehop: one table, from which the reference page is made, and checks of shared values.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace onehop::env {

inline constexpr double largest = std::numeric_limits<double>::max();

// A number from `low`, or above it, to `high`.
struct Number {
  std::string_view unit = {};  // what it counts: "seconds"
  bool whole = false;
  double low = 0;
  double high = largest;
  bool above = false;     // `low` itself is not accepted
  bool exponent = false;  // a whole number may be written as 1e7
};

// One of several words; the words after the last one are empty.
struct Choice {
  template <class... Words>
  constexpr explicit Choice(const Words&... given) : words{given...} {}
  std::array<std::string_view, 4> words;
};

// A name, a path or a text, whose reader knows what is wrong with it.
struct Text {
  std::string_view what;
};

using Values = std::variant<Number, Choice, Text>;

struct Variable {
  std::string_view name;
  Values values;
  std::string_view default_value;  // the value that applies if it is unset or empty, in words
  std::string_view meaning;        // one or two sentences
  std::string_view read_in;        // the source file that reads it
  // Who sets it: "user", "launcher" (onehop sets it for the processes it starts), or "test".
  std::string_view set_by;
};

// All variables named ONEHOP_... that onehop, its drop-in interfaces or its tests read, sorted by name.
[[nodiscard]] std::span<const Variable> variables() noexcept;

// The accepted values in words: "number of seconds, 0 or more", "path", "0 or 1".
[[nodiscard]] std::string words(const Values& values);

inline constexpr int max_threads = 1024;  // of a rank

// The value of a variable, in the table or not; none if it is unset or empty.
[[nodiscard]] std::optional<std::string> text(const std::string& name);

// The value of a variable in which a launcher passes a rank or a number of ranks, in the table or not: 0 to 2^24; none
// if it is unset or empty. Throws BadInput for anything else.
[[nodiscard]] std::optional<int> rank_number(const std::string& name);

// The value of a variable of the table that is a number; none if it is unset or empty. Throws BadInput for a value that
// is not of the form that the table names, or for a variable that is not a number.
[[nodiscard]] std::optional<double> number(std::string_view name);

// The value of a variable of the table that is one of several words, or its default. Throws BadInput for another word.
[[nodiscard]] std::string choice(std::string_view name);

// Checks the variables that are one of several words, and all variables that are numbers. Throws BadInput
// for the first invalid value. The command line calls it before it starts ranks.
void check();

}  // namespace onehop::env
