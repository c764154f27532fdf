// Numbers as text for people: byte counts with binary units, and counted nouns. The Python side is
// python/onehop/text.py.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace onehop::base {

// A number of bytes in the largest binary unit that leaves at least 1, with 4 digits: "1.5 MiB".
[[nodiscard]] std::string bytes_text(std::int64_t bytes);

// A real number with up to 6 digits: "0.1", "-1e-09", "inf". std::to_string prints the second one as "-0.000000".
[[nodiscard]] std::string number_text(double number);

// The number at the beginning of a text, as strtod reads it, but with a point in every locale that the program chooses.
// `end` receives the place behind it.
[[nodiscard]] double decimal_number(const char* text, char** end);

// A number with its noun: "1 round", "2 rounds", "3 matches", "4 entries".
[[nodiscard]] std::string counted(std::int64_t number, std::string_view noun);
template <std::integral Number>
[[nodiscard]] std::string counted(Number number, std::string_view noun) {
  return counted(static_cast<std::int64_t>(number), noun);
}

}  // namespace onehop::base
