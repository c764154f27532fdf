// Enumerators and their names, for to_string and its reverse.
#pragma once

#include <cassert>
#include <cstddef>
#include <string>
#include <string_view>

#include "onehop/error.h"

namespace onehop::detail {

template <class Value>
struct NamedValue {
  Value value;
  std::string_view name;
};

template <class Value, std::size_t size>
[[nodiscard]] std::string_view name_of(Value value, const NamedValue<Value> (&names)[size]) {
  for (const auto& entry : names) {
    if (entry.value == value) return entry.name;
  }
  assert(!"an enumerator without a name");
  return "?";
}

// Throws BadInput for an unknown name and lists the known ones; `noun` is what it should name: "a codec".
template <class Value, std::size_t size>
[[nodiscard]] Value value_of(std::string_view name, const NamedValue<Value> (&names)[size], std::string_view noun) {
  std::string known;
  for (const auto& entry : names) {
    if (entry.name == name) return entry.value;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw BadInput("expected " + std::string(noun) + " (one of: " + known + "), found '" + std::string(name) + "'");
}

}  // namespace onehop::detail
