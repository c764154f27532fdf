#include "src/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/cpu.h"
#include "src/base/text.h"

namespace onehop::base {
namespace {

// How long to wait awake.
struct Polling {
  int polls = 0;   // with a pause of the processor after each, together some 10 ns
  int yields = 0;  // polls with a yield of the core after each
};

// 4000 polls are longer than most pauses within a solver's iteration.
constexpr Polling polling_of_worker(WaitStyle style) {
  return style == WaitStyle::sleep ? Polling{0, 0} : Polling{4000, 50};
}
constexpr Polling polling_of_caller(WaitStyle style) {
  return style == WaitStyle::sleep ? Polling{2000, 0} : Polling{4000, 50};
}

// Waits until `word` is no longer `old`, and returns what it is then.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t old, const Polling& polling) {
  for (int i = 0; i < polling.polls; ++i) {
    const std::uint32_t found = word.load(std::memory_order_acquire);
    if (found != old) return found;
    cpu::pause();
  }
  for (int i = 0; i < polling.yields; ++i) {
    const std::uint32_t found = word.load(std::memory_order_acquire);
    if (found != old) return found;
    sched_yield();
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

class Worker {
 public:
  Worker() : thread_([this] { loop(); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // A null body ends the thread.
  void submit(const std::function<void(int)>* body, int index, WaitStyle style) {
    body_ = body;
    index_ = index;
    style_ = style;
    submitted_.fetch_add(1, std::memory_order_release);
    submitted_.notify_one();
  }

  // Waits for the end of the body, and returns what it threw.
  std::exception_ptr join() {
    const std::uint32_t wanted = submitted_.load(std::memory_order_relaxed);
    for (std::uint32_t found = done_.load(std::memory_order_acquire); found != wanted;)
      found = wait_for_change(done_, found, polling_of_caller(style_));
    return std::exchange(thrown_, nullptr);
  }

  void end() {
    submit(nullptr, 0, WaitStyle::sleep);
    thread_.join();
  }

  Worker* next = nullptr;  // in a chain of idle or of leased workers

 private:
  void loop() {
    Polling polling;
    for (std::uint32_t seen = 0;;) {
      seen = wait_for_change(submitted_, seen, polling);
      if (body_ == nullptr) return;
      polling = polling_of_worker(style_);
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
  WaitStyle style_ = WaitStyle::sleep;
  std::exception_ptr thrown_;
  alignas(64) std::atomic<std::uint32_t> submitted_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
  std::thread thread_;  // last: it uses the others
};

// The workers of this process.
class Workers {
 public:
  explicit Workers(const Workers* of_parent = nullptr) : of_parent_(of_parent) {}

  // Takes `count` workers, at least 1, out of the chain of idle ones: the first of their chain.
  Worker* lease(int count) {
    const std::lock_guard lock(mutex_);
    Worker** link = &idle_;
    for (int i = 0; i < count; ++i) {
      if (*link == nullptr) {
        all_.push_back(started(count));
        *link = all_.back().get();
      }
      link = &(*link)->next;
    }
    Worker* const first = std::exchange(idle_, *link);
    *link = nullptr;
    return first;
  }

  // In front and in the same order, so that the next lease gives the same workers.
  void release(Worker* first) {
    Worker* last = first;
    while (last->next != nullptr) last = last->next;
    const std::lock_guard lock(mutex_);
    last->next = std::exchange(idle_, first);
  }

  void end_idle() {
    const std::lock_guard lock(mutex_);
    for (Worker* each = std::exchange(idle_, nullptr); each != nullptr; each = each->next) each->end();
  }

 private:
  // Throws Error where the system refuses a thread. Workers that were started before stay idle.
  static std::unique_ptr<Worker> started(int count) {
    try {
      return std::make_unique<Worker>();
    } catch (const std::system_error& error) {
      throw Error("cannot start " + counted(count, "thread") + ": " + error.what() +
                  "; set ONEHOP_THREADS to fewer, or allow more threads (ulimit -u)");
    }
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> all_;  // all that were ever started
  Worker* idle_ = nullptr;
  // Kept reachable and never destroyed: the threads do not exist here, and one of them may have held the mutex.
  [[maybe_unused]] const Workers* of_parent_;
};

// Never destroyed: a simulator of static lifetime may outlast it. Idle threads end at exit.
Workers*& workers() {
  static Workers* the_workers = new Workers;
  static const int handler = pthread_atfork(nullptr, nullptr, [] { the_workers = new Workers(the_workers); });
  static const struct AtExit {
    ~AtExit() { the_workers->end_idle(); }
  } at_exit;
  static_cast<void>(handler);
  static_cast<void>(at_exit);
  return the_workers;
}

// Made when the program is loaded: a child that was forked during the first call in another thread would wait for the
// end of that call for ever.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): without memory at load, ending is right
[[maybe_unused]] const Workers* const made_at_load = workers();

// Workers for one run.
class Lease {
 public:
  explicit Lease(int count) : first_(workers()->lease(count)) {}
  ~Lease() { workers()->release(first_); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  template <typename Each>
  void for_each(const Each& each) const {
    for (Worker* worker = first_; worker != nullptr; worker = worker->next) each(*worker);
  }

 private:
  Worker* first_;
};

}  // namespace

void ThreadPool::run(const std::function<void(int)>& body) const {
  if (threads_ == 1) {
    body(0);
    return;
  }
  std::exception_ptr first;
  {
    const Lease lease(threads_ - 1);
    int index = 0;
    lease.for_each([&](Worker& worker) { worker.submit(&body, ++index, style_); });
    // Whatever happens here, the workers are waited for: they use `body`.
    try {
      body(0);
    } catch (...) {
      first = std::current_exception();
    }
    lease.for_each([&](Worker& worker) {
      std::exception_ptr thrown = worker.join();
      if (!first) first = std::move(thrown);
    });
  }
  if (first) std::rethrow_exception(first);
}

void Barrier::wait() {
  if (threads_ == 1) return;
  const std::uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(threads_)) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    return;
  }
  wait_for_change(generation_, generation, polling_of_caller(WaitStyle::sleep));
}

}  // namespace onehop::base
