// The engine's threads: a region of code that several threads run together, and a barrier inside it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

namespace onehop::quantum {

// The time of the steady clock in seconds.
[[nodiscard]] double steady_seconds();

// How many threads `requested` means: itself if positive, otherwise ONEHOP_THREADS or the size of the affinity mask.
[[nodiscard]] int thread_count(int requested);

// The threads of one region meet here. Waits by a short spin, then asleep.
class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads) {}
  void wait();

 private:
  int threads_;
  std::atomic<std::uint32_t> here_{0};
  std::atomic<std::uint32_t> generation_{0};
};

// Runs body(0) .. body(threads - 1), body(0) on the calling thread, and returns when all are done. The other threads come from a
// pool that outlives the call and sleeps between calls; callers on different threads get different ones. The first exception of a
// body is thrown here; bodies that meet at a barrier must not throw.
void run_together(int threads, const std::function<void(int)>& body);

// Splits [0, count) into pieces of at most `grain` which the threads take as they come: body(begin, end).
template <typename Body>
void parallel_for(int threads, std::uint64_t count, std::uint64_t grain, const Body& body) {
  const std::uint64_t pieces = (count + grain - 1) / grain;
  if (threads <= 1 || pieces <= 1) {
    for (std::uint64_t begin = 0; begin < count; begin += grain) body(begin, std::min(count, begin + grain));
    return;
  }
  std::atomic<std::uint64_t> next{0};
  run_together(static_cast<int>(std::min<std::uint64_t>(pieces, static_cast<std::uint64_t>(threads))), [&](int) {
    for (std::uint64_t piece = next++; piece < pieces; piece = next++) {
      body(piece * grain, std::min(count, (piece + 1) * grain));
    }
  });
}

}  // namespace onehop::quantum
