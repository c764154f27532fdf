// Integer arithmetic on sizes that throws BadInput instead of wrapping round.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "onehop/error.h"

namespace onehop::detail {

[[noreturn]] inline void throw_too_large(std::string_view what) {
  throw BadInput("expected " + std::string(what) + " below 2^63, found a larger one: make the sizes smaller");
}

// `what` names the result in the message: "the number of elements".
[[nodiscard]] inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw_too_large(what);
  return result;
}

[[nodiscard]] inline std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw_too_large(what);
  return result;
}

}  // namespace onehop::detail
