#include "src/base/thread_count.h"

#include <string>
#include <thread>

#include "onehop/error.h"
#include "src/base/env.h"

namespace onehop::base {

cpu_set_t core_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return mask;
  for (unsigned core = 0; core < std::min<unsigned>(std::thread::hardware_concurrency(), CPU_SETSIZE); ++core)
    CPU_SET(core, &mask);
  return mask;
}

int thread_count(int requested, const cpu_set_t& mask, int sharing) {
  if (requested < 0 || requested > env::max_threads) {
    throw BadInput("threads: expected 0 (all) to " + std::to_string(env::max_threads) + ", found " +
                   std::to_string(requested));
  }
  if (requested > 0) return requested;
  if (const auto number = env::number("ONEHOP_THREADS")) return static_cast<int>(*number);
  return std::max(1, CPU_COUNT(&mask) / std::max(1, sharing));
}

int thread_count(int requested) { return thread_count(requested, core_mask(), 1); }

}  // namespace onehop::base
