// The threads of a process: workers that every simulator and solver shares, regions of code that several of them run
// together, and a barrier for such regions.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace onehop::base {

// How idle threads wait.
enum class WaitStyle : std::uint8_t {
  // Workers sleep at once; the caller polls for some 20 us before it sleeps. For regions of milliseconds, between which
  // the cores are left to other processes.
  sleep,
  // Workers and caller poll for some 50 us, then yield the core for about as long, then sleep. For short loops in quick
  // succession.
  poll,
};

// Runs bodies on a fixed number of threads: the caller's and workers of the process. Each run leases workers that
// nobody uses, starts those that are missing, and returns them, so that all pools of a process share its workers, and
// callers on different threads have different ones. A caller that is alone gets the same worker for the same index each
// time. A forked child has none of its parent's workers: it leaves them alone and starts its own.
class ThreadPool {
 public:
  explicit ThreadPool(int threads, WaitStyle style = WaitStyle::poll) noexcept
      : threads_(std::max(1, threads)), style_(style) {}

  [[nodiscard]] int size() const noexcept { return threads_; }

  // Runs body(0) on the calling thread and body(1) .. body(size() - 1) on workers, and returns when all are done. The
  // first exception of a body, in the order of indices, is thrown here then; bodies that meet at a barrier must not
  // throw. A process that a body forks must not return from the body.
  void run(const std::function<void(int)>& body) const;

  // The part of [first, last) that is this thread's. The parts differ by at most 1, and depend on the range and on
  // size() only.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> part(std::int64_t first, std::int64_t last, int thread) const {
    const std::int64_t count = last - first;
    return {first + count * thread / threads_, first + count * (thread + 1) / threads_};
  }

 private:
  int threads_;
  WaitStyle style_;
};

// The threads of one region meet here. They poll for some 20 us, then sleep.
class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads) {}
  void wait();

 private:
  int threads_;
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> generation_{0};
};

// Splits [0, count) into pieces of at most `grain`, which at most `threads` threads take in turn: body(begin, end).
// Workers sleep at once.
template <typename Body>
void parallel_for(int threads, std::uint64_t count, std::uint64_t grain, const Body& body) {
  const std::uint64_t pieces = (count + grain - 1) / grain;
  if (threads <= 1 || pieces <= 1) {
    for (std::uint64_t begin = 0; begin < count; begin += grain) body(begin, std::min(count, begin + grain));
    return;
  }
  std::atomic<std::uint64_t> next{0};
  const int useful = static_cast<int>(std::min<std::uint64_t>(pieces, static_cast<std::uint64_t>(threads)));
  ThreadPool(useful, WaitStyle::sleep).run([&](int) {
    for (std::uint64_t piece = next++; piece < pieces; piece = next++) {
      body(piece * grain, std::min(count, (piece + 1) * grain));
    }
  });
}

}  // namespace onehop::base
