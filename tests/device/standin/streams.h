// Streams and events of the stand-in drivers: a stream is a thread.
#pragma once
// NOLINTBEGIN: the forms are those of driver.cc.
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {

// Freeing memory waits for all work, as with the real drivers.
class Stream {
 public:
  Stream() : thread_([this] { run(); }) {
    const std::lock_guard guard(all_mutex);
    all.insert({getpid(), this});
  }
  ~Stream() {
    push({});
    thread_.join();
    const std::lock_guard guard(all_mutex);
    all.erase({getpid(), this});
  }
  static void drain_all() {
    const std::lock_guard guard(all_mutex);
    for (const auto& [process, stream] : all) {
      if (process == getpid()) stream->drain();
    }
  }
  void push(std::function<void()> work) {
    const std::lock_guard guard(mutex_);
    if (captures_) return captured_.push_back(std::move(work));
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  void drain() {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return work_.empty(); });
  }
  bool is_done() {
    const std::lock_guard guard(mutex_);
    return work_.empty();
  }
  bool is_capturing() {
    const std::lock_guard guard(mutex_);
    return captures_;
  }
  // Returns what was captured before.
  std::vector<std::function<void()>> capture(bool on) {
    const std::lock_guard guard(mutex_);
    captures_ = on;
    return std::exchange(captured_, {});
  }

 private:
  void run() {
    for (;;) {
      std::unique_lock guard(mutex_);
      changed_.wait(guard, [&] { return !work_.empty(); });
      const std::function<void()> work = work_.front();
      guard.unlock();
      if (!work) return;
      work();
      guard.lock();
      work_.pop_front();
      changed_.notify_all();
    }
  }
  static inline std::mutex all_mutex;
  static inline std::set<std::pair<pid_t, Stream*>> all;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool captures_ = false;
  std::vector<std::function<void()>> captured_;
  std::thread thread_;
};

// The default stream of a card of this process, which is never destroyed.
inline Stream& default_stream(int card) {
  static std::mutex mutex;
  static auto& defaults = *new std::map<std::pair<pid_t, int>, Stream*>;
  const std::lock_guard guard(mutex);
  Stream*& found = defaults[{getpid(), card}];
  if (found == nullptr) found = new Stream;
  return *found;
}

struct Event {
  static constexpr unsigned without_time = 2;
  explicit Event(unsigned all_flags) : flags(all_flags) {}
  const unsigned flags;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::chrono::steady_clock::time_point at;
};

}  // namespace
// NOLINTEND
