// The steady clock as a number.
#pragma once

#include <chrono>

namespace onehop::base {

// The time of the steady clock in seconds, from an origin that is fixed for the life of the process.
[[nodiscard]] inline double steady_seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace onehop::base
