// Records the process that a group belongs to. A forked child has copies of its parent's groups and channels but is not
// a rank: it neither uses nor closes them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "onehop/forks.h"

namespace onehop::detail {

// From the first call on `forks` (onehop/forks.h) counts. Called before the first group is made.
void count_forks();

// A process.
class ProcessMark {
 public:
  // This process.
  ProcessMark();
  // One look at a counter: plans ask between start and finish, where no system call may be.
  [[nodiscard]] bool is_this_process() const noexcept { return forks_ == forks.load(std::memory_order_relaxed); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  pid_t pid_;
  std::uint32_t forks_;
};

// Throws Error: this process was forked from `owner`, and `what` ("the group of rank 1 of 2") belongs there.
[[noreturn]] void throw_forked(const ProcessMark& owner, const std::string& what);

}  // namespace onehop::detail
