// One trial of each kind. Both throw std::logic_error, which describes the anomaly. `plant` makes an anomaly, for tests
// of the trials: one wrong byte, or the wrong rank as the lost one.
#pragma once

#include <cstdint>

namespace onehop::soak {

// Exchanges that `schedules` random schedules have made, on a random number of ranks; every byte was compared.
[[nodiscard]] std::int64_t exchanges(std::uint64_t seed, int schedules, bool plant = false);

struct Fault {
  enum class Kind : std::uint8_t { kill, stop, exit, exception, two_kills } kind;
  double told;  // seconds from the fault until the last survivor was told
  std::int64_t exchanges;
};

// Ranks at random work, of which one is killed, stopped and killed, leaves or throws at a random moment, or two are
// killed. Every other rank must be told which, within five seconds, and nothing may be left behind.
[[nodiscard]] Fault fault(std::uint64_t seed, bool plant = false);

}  // namespace onehop::soak
