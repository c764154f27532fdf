// What the tests of faults have in common: ranks in a ring that do something, and clocks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "onehop/channel.h"
#include "onehop/group.h"
#include "onehop/plan.h"

namespace onehop::testing {

using Clock = std::chrono::steady_clock;
[[nodiscard]] double seconds_since(Clock::time_point begin);
void nap(double seconds);

// A counter that this process and its forks share.
class SharedCounter {
 public:
  SharedCounter();
  ~SharedCounter();
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  std::atomic<int>& operator*() const { return *static_cast<std::atomic<int>*>(at_); }

 private:
  void* at_;
};

// A channel to the next rank and one from the last, in a ring.
[[nodiscard]] Channels ring_of_channels(const Group& group, std::int64_t bytes);

// A periodic halo in one dimension, bound to memory.
struct RingPlan {
  explicit RingPlan(const Group& group, std::int64_t sites = 1000, std::int64_t width = 100,
                    const PlanOptions& options = {});
  std::vector<std::byte> memory;
  std::unique_ptr<Plan> plan;
};

}  // namespace onehop::testing
