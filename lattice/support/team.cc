#include "lattice/support/team.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

#include "src/base/cpu.h"
#include "src/base/env.h"

namespace onehop::lattice::detail {

namespace {

// Some 50 us, longer than most pauses within a solver's iteration; then the core goes to others that want it, for as long.
constexpr int spins = 4000;
constexpr int yields = 50;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Until `word` is no longer `old`.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  for (int spin = 0; spin < spins; ++spin) {
    const std::uint32_t found = word.load(std::memory_order_acquire);
    if (found != old) return found;
    pause_briefly();
  }
  for (int i = 0; i < yields; ++i) {
    const std::uint32_t found = word.load(std::memory_order_acquire);
    if (found != old) return found;
    sched_yield();
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

}  // namespace

class Team::Worker {
 public:
  void start(int index) {
    thread_ = std::thread([this, index] { loop(index); });
  }
  void give(const std::function<void(int)>* body) {
    body_ = body;
    given_.fetch_add(1, std::memory_order_release);
    given_.notify_one();
  }
  // Waits for the end of the body and returns what it threw.
  std::exception_ptr take_back() {
    const std::uint32_t wanted = given_.load(std::memory_order_relaxed);
    for (std::uint32_t found = done_.load(std::memory_order_acquire); found != wanted;)
      found = wait_for_change(done_, found);
    return std::exchange(thrown_, nullptr);
  }
  // A forked child has none of its parent's threads, so that joining one would never return.
  void leave_to_parent() {
    if (thread_.joinable()) thread_.detach();
  }
  ~Worker() {
    if (!thread_.joinable()) return;
    give(nullptr);
    thread_.join();
  }

 private:
  void loop(int index) {
    for (std::uint32_t seen = 0;;) {
      seen = wait_for_change(given_, seen);
      if (body_ == nullptr) return;
      try {
        (*body_)(index);
      } catch (...) {
        thrown_ = std::current_exception();
      }
      done_.store(seen, std::memory_order_release);
      done_.notify_one();
    }
  }

  const std::function<void(int)>* body_ = nullptr;
  std::exception_ptr thrown_;
  alignas(64) std::atomic<std::uint32_t> given_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
  std::thread thread_;
};

Team::Team(int threads)
    : threads_(std::max(1, threads)), forks_(onehop::detail::forks.load(std::memory_order_relaxed)) {
  // Loops ask for it on threads that nobody could catch an error of: a wrong ONEHOP_SIMD is said here.
  static_cast<void>(cpu::level());
  if (threads_ == 1) return;
  workers_ = std::make_unique<Worker[]>(static_cast<std::size_t>(threads_ - 1));
  for (int i = 1; i < threads_; ++i) workers_[static_cast<std::size_t>(i - 1)].start(i);
}

Team::~Team() {
  if (is_parents())
    for (int i = 1; i < threads_; ++i) workers_[static_cast<std::size_t>(i - 1)].leave_to_parent();
}

bool Team::is_parents() const noexcept { return forks_ != onehop::detail::forks.load(std::memory_order_relaxed); }

void Team::run(const std::function<void(int)>& body) {
  if (is_parents()) {
    for (int i = 0; i < threads_; ++i) body(i);
    return;
  }
  for (int i = 1; i < threads_; ++i) workers_[static_cast<std::size_t>(i - 1)].give(&body);
  // Whatever happens here, the others are waited for: they use `body`.
  std::exception_ptr first;
  try {
    body(0);
  } catch (...) {
    first = std::current_exception();
  }
  for (int i = 1; i < threads_; ++i) {
    std::exception_ptr thrown = workers_[static_cast<std::size_t>(i - 1)].take_back();
    if (!first) first = std::move(thrown);
  }
  if (first) std::rethrow_exception(first);
}

int team_size(const Group& group) {
  if (const auto number = env::threads()) return *number;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  const Gathered all = group.allgather(std::as_bytes(std::span(&mine, 1)));
  int sharing = 0;
  for (const int rank : group.local_ranks()) {
    if (std::memcmp(all[static_cast<std::size_t>(rank)].data(), &mine, sizeof mine) == 0) ++sharing;
  }
  return std::max(1, CPU_COUNT(&mine) / std::max(1, sharing));
}

}  // namespace onehop::lattice::detail
