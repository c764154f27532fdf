// Records the process to which a group belongs. A forked child has copies of its parent's groups and channels but is
// not a rank: it neither uses nor closes them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "onehop/detail/forks.h"

namespace onehop::detail {

// Starts to count forks in `forks` (onehop/detail/forks.h). Must be called before the first group is made.
void count_forks();

// Identifies a process.
class ProcessMark {
 public:
  // Marks this process.
  ProcessMark();
  // Reads one counter, because plans call it between start and finish, where no system call is allowed.
  [[nodiscard]] bool is_this_process() const noexcept { return forks_ == forks.load(std::memory_order_relaxed); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  pid_t pid_;
  std::uint32_t forks_;
};

// Throws Error: `what` ("the group of rank 1 of 2") belongs to `owner`, from which this process was forked.
[[noreturn]] void throw_forked(const ProcessMark& owner, const std::string& what);

}  // namespace onehop::detail
