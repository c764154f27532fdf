// Checks whether processes are alive, and limits the time of waits.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "src/base/clock.h"

namespace onehop::detail {

// Watches processes by pidfd, which is never reused, unlike a process number. Several threads may ask at a time.
class ProcessWatch {
 public:
  explicit ProcessWatch(int processes);
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // Starts to watch process `pid` as number `index`, if it is not yet watched.
  void watch(int index, pid_t pid);
  // Whether it has ended; a zombie has. Watches it from the first call on.
  [[nodiscard]] bool ended(int index, pid_t pid);

 private:
  std::vector<std::atomic<int>> fds_;  // -1: not yet watched; -2: had already ended
};

// Measures a wait and enforces its limit in seconds (0: none). Warns once on stderr after 30 seconds.
class Deadline {
 public:
  explicit Deadline(double seconds);
  // Throws Timeout if the limit is exceeded. `describe()` returns the text that the message begins with.
  template <class Describe>
  void check(const Describe& describe) {
    const double waited = seconds();
    if (limit_ > 0 && waited > limit_) throw_timeout(describe(), waited);
    if (!warned_ && waited > 30) {
      warned_ = true;
      warn(describe(), waited);
    }
  }
  [[nodiscard]] double seconds() const;

 private:
  [[noreturn]] static void throw_timeout(const std::string& what, double waited);
  static void warn(const std::string& what, double waited);

  double begin_ = base::steady_seconds();
  double limit_ = 0;
  bool warned_ = false;
};

// The value of ONEHOP_TIMEOUT in seconds; 0 if it is not set. Throws BadInput for an invalid value.
[[nodiscard]] double default_timeout();

// Calls the function that set_interrupt_check has set, if any.
void call_interrupt_check();

}  // namespace onehop::detail
