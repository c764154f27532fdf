#include "src/group/forks.h"

#include <pthread.h>
#include <unistd.h>

#include <mutex>

#include "onehop/error.h"

namespace onehop::detail {

constinit std::atomic<std::uint32_t> forks{0};

void count_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); }); });
}

ProcessMark::ProcessMark() : pid_(getpid()), forks_(forks.load(std::memory_order_relaxed)) {}

void throw_forked(const ProcessMark& owner, const std::string& what) {
  throw Error(what + " belongs to process " + std::to_string(owner.pid()) + ", and this is process " +
              std::to_string(getpid()) +
              ", which was forked from it and is not a rank; use onehop in the process that made the group, or make "
              "the group after the fork (a single rank: Group::alone())");
}

}  // namespace onehop::detail
