// What making a group, channels and a plan costs with the number of ranks: bytes that a rank gathers, memory, time.
#include <gtest/gtest.h>
#include <malloc.h>
#include <semaphore.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "src/base/clock.h"

namespace onehop {
namespace {

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// An all-gather between threads, which share its result. As many ranks compute at a time as there are cores; thousands
// would wait for each other's memory allocator instead.
class Gathering {
 public:
  explicit Gathering(int ranks) : ranks_(ranks), given_(static_cast<std::size_t>(ranks)) {
    sem_init(&cores_, 0, std::max(1U, std::thread::hardware_concurrency()));
  }

  ~Gathering() { sem_destroy(&cores_); }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  void begin_to_compute() {
    while (sem_wait(&cores_) != 0) {  // a signal
    }
  }
  void end_to_compute() { sem_post(&cores_); }

  Gathered operator()(int rank, std::span<const std::byte> mine) {
    Gathered complete;
    end_to_compute();
    {
      std::unique_lock lock(mutex_);
      given_[static_cast<std::size_t>(rank)].assign(mine.begin(), mine.end());
      if (++count_ == ranks_) {
        count_ = 0;
        complete_ = Gathered(given_);
        for (const std::span<const std::byte> one : complete_) bytes_ += static_cast<std::int64_t>(one.size());
        ++generation_;
        changed_.notify_all();
      } else {
        const std::uint64_t generation = generation_;
        changed_.wait(lock, [&] { return generation_ != generation; });
      }
      complete = complete_;
    }
    begin_to_compute();
    return complete;
  }
  // Of all contributions so far: what each rank has received.
  [[nodiscard]] std::int64_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  int ranks_;
  sem_t cores_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::byte>> given_;
  Gathered complete_;  // no rank contributes to the next one before it has taken this one
  int count_ = 0;
  std::uint64_t generation_ = 0;
  std::int64_t bytes_ = 0;
};

struct Cost {
  std::int64_t group_bytes = 0;  // that a rank gathers for its group
  std::int64_t plan_bytes = 0;   // and for the plan
  double seconds = 0;            // from the first rank to the last
  double most_seconds = 0;       // of the processor, for one rank
  double kept_bytes = 0;         // memory of each rank, once all are prepared
  double most_bytes = 0;         // and the most at any time
};

// The memory of this process, in bytes, from /proc/self/status: "VmRSS" now, "VmHWM" at most.
double memory(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return 1024 * std::stod(line.substr(name.size() + 1));
  }
  return 0;
}

// Each of `ranks` threads makes a group and a plan of a halo with six neighbours, over a transport that moves nothing.
Cost prepare(std::array<int, 3> grid) {
  const int ranks = grid[0] * grid[1] * grid[2];
  HaloSpec spec{.extents = {grid[0] * 4, grid[1] * 4, grid[2] * 4},
                .grid = {grid[0], grid[1], grid[2]},
                .widths = {{1, 1}, {1, 1}, {1, 1}},
                .periodic = {true, true, true}};
  Gathering gathering(ranks);
  std::atomic<int> ready{0};
  std::atomic<bool> end{false};
  std::vector<double> seconds(static_cast<std::size_t>(ranks));
  std::vector<std::string> failures(static_cast<std::size_t>(ranks));
  Cost cost;
  const double before = memory("VmRSS");
  const double begin = base::steady_seconds();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        gathering.begin_to_compute();
        const double own = thread_seconds();
        const Group group = Group::from_allgather(
            rank, ranks, [&, rank](std::span<const std::byte> mine) { return gathering(rank, mine); });
        if (rank == 0) cost.group_bytes = gathering.bytes();
        std::vector<double> array(6 * 6 * 6);
        PlanOptions options;
        options.transport = TransportKind::mock;
        const std::array arrays{std::as_writable_bytes(std::span(array))};
        const Plan plan(group, halo(spec, rank), arrays, options);
        seconds[static_cast<std::size_t>(rank)] = thread_seconds() - own;
        gathering.end_to_compute();
        if (++ready == ranks) {
          cost.seconds = base::steady_seconds() - begin;
          cost.kept_bytes = (memory("VmRSS") - before) / ranks;
          cost.plan_bytes = gathering.bytes() - cost.group_bytes;
          end = true;
          end.notify_all();
        }
        end.wait(false);
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = error.what();
        end = true;
        end.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  cost.most_bytes = (memory("VmHWM") - before) / ranks;
  cost.most_seconds = *std::ranges::max_element(seconds);
  return cost;
}

TEST(Preparation, GathersAFixedNumberOfBytesFromEachRank) {
  const Cost small = prepare({4, 4, 4});
  const Cost large = prepare({8, 8, 4});
  // Six neighbours of each rank, or twelve channel ends, of 64 bytes each would be 768 bytes.
  EXPECT_LT(large.plan_bytes, 256 * 400);
  EXPECT_LT(large.group_bytes, 256 * 800);
  EXPECT_NEAR(static_cast<double>(large.plan_bytes) / 256, static_cast<double>(small.plan_bytes) / 64, 1);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep memory of their own
  EXPECT_LT(large.kept_bytes, 1e6);
#endif
}

// Prints figures with more ranks: onehop_tests --gtest_filter='Preparation.*' --gtest_also_run_disabled_tests
TEST(Preparation, DISABLED_OfManyRanks) {
  // Few arenas, which keep what they once had: all ranks are in one process here. With one a core, two ranks that
  // compute would often wait for the same one.
  mallopt(M_ARENA_MAX, 4 * static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 25);
  for (const std::array<int, 3> grid : {std::array{8, 8, 4}, std::array{8, 8, 8}, std::array{16, 8, 8},
                                        std::array{16, 16, 8}, std::array{16, 16, 16}}) {
    const Cost cost = prepare(grid);
    std::printf(
        "{\"ranks\": %d, \"seconds\": %.2f, \"most_seconds_of_a_rank\": %.4f, \"kept_bytes\": %.0f, \"most_bytes\": "
        "%.0f, "
        "\"group_bytes\": "
        "%lld, \"plan_bytes\": %lld}\n",
        grid[0] * grid[1] * grid[2], cost.seconds, cost.most_seconds, cost.kept_bytes, cost.most_bytes,
        static_cast<long long>(cost.group_bytes), static_cast<long long>(cost.plan_bytes));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace onehop
