#include "quantum/engine/engine_threads.h"

#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "onehop/error.h"
#include "src/base/env.h"

namespace onehop::quantum {
namespace {

constexpr int most_threads = 1024;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// One further thread: sleeps until it is given a body.
class Worker {
 public:
  Worker() : thread_([this] { loop(); }) {}
  ~Worker() {
    hand_over(nullptr, 0);
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void hand_over(const std::function<void(int)>* body, int index) {
    body_ = body;
    index_ = index;
    given_.fetch_add(1, std::memory_order_release);
    given_.notify_one();
  }

  // Waits for the end of the body; what it threw.
  std::exception_ptr take_back() {
    const std::uint32_t given = given_.load(std::memory_order_relaxed);
    for (int spin = 0; spin < 2000; ++spin) {
      if (done_.load(std::memory_order_acquire) == given) return std::move(thrown_);
      pause_briefly();
    }
    for (std::uint32_t done = done_.load(std::memory_order_acquire); done != given;
         done = done_.load(std::memory_order_acquire)) {
      done_.wait(done, std::memory_order_acquire);
    }
    return std::move(thrown_);
  }

 private:
  void loop() {
    for (std::uint32_t seen = 0;;) {
      given_.wait(seen, std::memory_order_acquire);
      seen = given_.load(std::memory_order_acquire);
      if (body_ == nullptr) return;
      thrown_ = nullptr;
      try {
        (*body_)(index_);
      } catch (...) {
        thrown_ = std::current_exception();
      }
      done_.store(seen, std::memory_order_release);
      done_.notify_one();
    }
  }

  const std::function<void(int)>* body_ = nullptr;
  int index_ = 0;
  std::exception_ptr thrown_;
  std::atomic<std::uint32_t> given_{0};
  std::atomic<std::uint32_t> done_{0};
  std::thread thread_;  // last: it uses the others
};

// The workers that nobody uses now. A process that was forked has none of its parent's threads, so it starts with none: the
// parent's are left where they are, for their destructors would wait for threads that do not exist.
class Pool {
 public:
  std::vector<std::unique_ptr<Worker>> lease(int count) {
    std::vector<std::unique_ptr<Worker>> leased;
    {
      const std::lock_guard lock(mutex_);
      if (owner_ != getpid()) {
        leave_idle();
        owner_ = getpid();
      }
      while (!idle_.empty() && static_cast<int>(leased.size()) < count) {
        leased.push_back(std::move(idle_.back()));
        idle_.pop_back();
      }
    }
    while (static_cast<int>(leased.size()) < count) leased.push_back(std::make_unique<Worker>());
    return leased;
  }

  void give_back(std::vector<std::unique_ptr<Worker>> workers) {
    const std::lock_guard lock(mutex_);
    for (auto& worker : workers) idle_.push_back(std::move(worker));
  }

  ~Pool() {
    if (owner_ != getpid()) leave_idle();
  }

 private:
  void leave_idle() {
    for (auto& worker : idle_) {
      [[maybe_unused]] const Worker* of_the_parent = worker.release();
    }
    idle_.clear();
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
  pid_t owner_ = getpid();
};

Pool& pool() {
  static Pool the_pool;
  return the_pool;
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int thread_count(int requested) {
  if (requested < 0 || requested > most_threads) {
    throw BadInput("threads: expected 0 (all) to " + std::to_string(most_threads) + ", found " +
                   std::to_string(requested));
  }
  if (requested > 0) return requested;
  if (const auto number = env::threads()) return *number;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return std::max(1, CPU_COUNT(&mask));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void Barrier::wait() {
  if (threads_ == 1) return;
  const std::uint32_t generation = generation_.load(std::memory_order_acquire);
  if (here_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(threads_)) {
    here_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    return;
  }
  for (int spin = 0; spin < 2000; ++spin) {
    if (generation_.load(std::memory_order_acquire) != generation) return;
    pause_briefly();
  }
  generation_.wait(generation, std::memory_order_acquire);
}

void run_together(int threads, const std::function<void(int)>& body) {
  if (threads <= 1) {
    body(0);
    return;
  }
  auto workers = pool().lease(threads - 1);
  for (int i = 1; i < threads; ++i) workers[static_cast<std::size_t>(i - 1)]->hand_over(&body, i);
  std::exception_ptr first;
  try {
    body(0);
  } catch (...) {
    first = std::current_exception();
  }
  for (auto& worker : workers) {
    std::exception_ptr thrown = worker->take_back();
    if (!first) first = std::move(thrown);
  }
  pool().give_back(std::move(workers));
  if (first) std::rethrow_exception(first);
}

}  // namespace onehop::quantum
