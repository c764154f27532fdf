// Runs of any schedule, each compared with an independent execution of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onehop/plan.h"
#include "onehop/schedule.h"
#include "tests/soak/native/schedules.h"

namespace onehop::soak {

// One rank's arrays, bound to a plan. Every run has new numbers, and is compared with the naive executor
// (tests/support/naive_execute.h).
class Compared {
 public:
  // Collective. The options of the plan and the kind of memory are drawn from `source`, the same on all ranks.
  Compared(const Group& group, Schedule schedule, std::uint64_t seed, Source source);
  // Throws std::logic_error that describes the first wrong byte.
  void run(std::uint64_t number);
  // For tests: makes the next run expect another last byte.
  void spoil() { spoiled_ = true; }
  // Of the arrays of all ranks.
  [[nodiscard]] std::int64_t bytes() const;

 private:
  int rank_;
  Schedule schedule_;
  std::uint64_t seed_;
  Source pauses_;
  std::string options_;
  std::vector<std::vector<std::byte>> own_;
  std::vector<SharedArray> shared_;
  std::vector<std::span<std::byte>> arrays_;
  std::unique_ptr<Plan> plan_;
  bool spoiled_ = false;
};

// Collective. Returns a function that makes the run of a number and checks it, in the way that costs least.
[[nodiscard]] std::function<void(std::uint64_t)> checked_runs(const Group& group, const Schedule& schedule,
                                                              std::uint64_t seed, const Source& source);

}  // namespace onehop::soak
