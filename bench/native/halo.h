// `onehop bench halo` and `onehop bench ring`: one round of a schedule, from array to array.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/native/measure.h"
#include "onehop/schedule.h"

namespace onehop::bench {

// The same exchange of the same arrays by other means, for example Python's plan or another library.
struct OtherCandidate {
  std::string name;
  Role role = Role::variant;
  std::function<void()> run;  // collective
  bool exact = true;          // false: received data is read but not compared, because a codec rounds it
};

struct HaloOptions {
  Effort effort;
  bool peers = true;
  // Also time packing and unpacking alone, without moving data, and between two ranks bare copies and flags.
  bool mock = true;
  // Each rank computes for about this long before each exchange; computing alone is then the speed of light.
  double compute_us = 0;
  std::vector<OtherCandidate> others;
  bool shared_arrays = false;  // also time a plan of arrays that the ranks share
};

// Samples are µs. Collective over the group, whose ranks must share memory.
[[nodiscard]] std::vector<Samples> halo_exchange(const Group& group, const Schedule& schedule,
                                                 std::span<const std::span<std::byte>> arrays,
                                                 const HaloOptions& options);

}  // namespace onehop::bench
