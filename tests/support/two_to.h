// Powers of two as sizes.
#pragma once

#include <cstdint>

namespace onehop::testing {

[[nodiscard]] constexpr std::int64_t two_to(unsigned power) {
  return static_cast<std::int64_t>(std::uint64_t{1} << power);
}

}  // namespace onehop::testing
