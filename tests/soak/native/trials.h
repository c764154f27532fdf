// One trial of each kind. Both throw std::logic_error, which describes the anomaly. `plant` makes an anomaly, for tests
// of the trials: one wrong byte, or the wrong rank as the lost one.
#pragma once

#include <cstdint>

namespace onehop::soak {

struct Counts {
  std::int64_t exchanges;  // runs of a plan, messages through a chain of channels, and reductions; all are compared
  int schedules;           // that they repeated
  std::int64_t adaptive;   // of them: plans and channels of which a sender of rank 0 chooses its stores while it runs
};

// Random schedules on a random number of ranks. A batch is one schedule, or up to 64 whose plans run at once.
[[nodiscard]] Counts exchanges(std::uint64_t seed, int batches, bool plant = false);

// Batches of plans, channels or reductions, chosen at random, with messages of more than 4 KiB, up to 256 KiB. Every
// byte is compared.
[[nodiscard]] Counts long_messages(std::uint64_t seed, int batches, bool plant = false);

struct Fault {
  enum class Kind : std::uint8_t { kill, stop, exit, exception, two_kills } kind;
  double told;  // seconds from the fault until the last survivor was told
  std::int64_t exchanges;
};

// Ranks at random work, of which one is killed, stopped and killed, leaves or throws at a random moment, or two are
// killed. Every other rank must be told which, within five seconds, and nothing may be left behind.
[[nodiscard]] Fault fault(std::uint64_t seed, bool plant = false);

// The same where ranks work in the world and in groups that are split from it, make plans and close groups. A rank that
// waits in a group without the killed one names who left it because of that one, and says so.
[[nodiscard]] Fault split_fault(std::uint64_t seed, bool plant = false);

}  // namespace onehop::soak
