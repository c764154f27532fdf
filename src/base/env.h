// The environment variables of onehop: one table, from which the reference page is made, and the checks of values that several places need.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace onehop::env {

struct Variable {
  std::string_view name;
  std::string_view values;         // what it may be, in words: "number of seconds", "path", "0 or 1"
  std::string_view default_value;  // what holds if it is unset or empty, in words
  std::string_view meaning;        // one sentence or two
  std::string_view read_in;        // the source that reads it
  // Who sets it: "user", "launcher" (onehop sets it for the processes it starts), or "test".
  std::string_view set_by;
};

// Every variable whose name begins with ONEHOP_ and that onehop, its drop-in interfaces or its tests read, sorted by name.
[[nodiscard]] std::span<const Variable> variables() noexcept;

// The value of ONEHOP_THREADS, 1 to 1024; none if it is unset or empty. Throws BadInput for anything else.
[[nodiscard]] std::optional<int> threads();

// Throws BadInput for the first variable that has a value which is wrong whatever the program does: ONEHOP_SIMD, ONEHOP_THREADS and the
// variables that are 0 or 1. The command line does so before it starts ranks.
void check();

}  // namespace onehop::env
