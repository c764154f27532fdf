// `onehop bench halo` and `onehop bench ring`: one round of a schedule, from array to array.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/rounds.h"
#include "onehop/schedule.h"

namespace onehop::bench {

// The same exchange of the same arrays by other means: Python's plan, another library.
struct OtherCandidate {
  std::string name;
  Role role = Role::variant;
  std::function<void()> run;  // collective
  bool exact = true;          // else what comes is only looked at: a codec rounds
};

struct HaloOptions {
  Effort effort;
  bool peers = true;
  bool mock = true;  // also: without moving anything, which is what packing costs
  double compute_us =
      0;  // each rank computes about this long before each exchange; then computing alone is the speed of light
  std::vector<OtherCandidate> others;
};

// Collective over the group, whose ranks must share memory. Of what crosses ranks one number (of float64) a line is
// written before each exchange, and read after it. Samples are µs.
[[nodiscard]] std::vector<Samples> halo_exchange(const Group& group, const Schedule& schedule,
                                                 std::span<const std::span<std::byte>> arrays,
                                                 const HaloOptions& options);

}  // namespace onehop::bench
