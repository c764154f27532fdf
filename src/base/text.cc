#include "src/base/text.h"

#include <locale.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace onehop::base {

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double number = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; number >= 1024 && unit + 1 < units.size(); ++unit) number /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %s", number, units[unit]);
  return text;
}

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

double decimal_number(const char* text, char** end) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(text, end, plain);
}

std::string counted(std::int64_t number, std::string_view noun) {
  std::string text = std::to_string(number) + " " + std::string(noun);
  if (number == 1) return text;
  const auto ends_with = [&](std::string_view ending) { return noun.ends_with(ending); };
  if (ends_with("s") || ends_with("sh") || ends_with("ch") || ends_with("x")) return text + "es";
  const bool vowel_before = noun.size() > 1 && std::string_view("aeiou").find(noun[noun.size() - 2]) != noun.npos;
  if (ends_with("y") && !vowel_before) return text.substr(0, text.size() - 1) + "ies";
  return text + "s";
}

}  // namespace onehop::base
