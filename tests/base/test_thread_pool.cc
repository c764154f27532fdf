// The threads of a process: every exception arrives after all bodies have ended, callers do not share workers, and a
// forked child neither waits for its parent's workers nor uses them.
#include "src/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "onehop/error.h"
#include "onehop/group.h"
#include "src/base/env.h"
#include "src/base/thread_count.h"
#include "tests/support/thrown.h"

namespace onehop::base {
namespace {

constexpr WaitStyle both_styles[] = {WaitStyle::sleep, WaitStyle::poll};

std::string thrown_by(const ThreadPool& pool, int thrower, std::atomic<int>& finished) {
  return onehop::testing::thrown<std::runtime_error>([&] {
    pool.run([&](int thread) {
      if (thread == thrower) throw std::runtime_error("thread " + std::to_string(thread));
      usleep(2000);  // the caller must not go on before this
      ++finished;
    });
  });
}

std::vector<std::thread::id> threads_of(const ThreadPool& pool) {
  std::vector<std::thread::id> found(static_cast<std::size_t>(pool.size()));
  pool.run([&](int thread) { found[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
  return found;
}

TEST(ThreadPool, ThrowsWhatABodyThrewAfterAllHaveEnded) {
  for (const WaitStyle style : both_styles) {
    const ThreadPool pool(3, style);
    for (int thrower = 0; thrower < 3; ++thrower) {
      std::atomic<int> finished{0};
      EXPECT_EQ(thrown_by(pool, thrower, finished), "thread " + std::to_string(thrower));
      EXPECT_EQ(finished, 2);
    }
    std::vector<int> seen(3, 0);
    pool.run([&](int thread) { seen[static_cast<std::size_t>(thread)] = 1; });
    EXPECT_EQ(seen, std::vector<int>(3, 1));
  }
}

TEST(ThreadPool, ThrowsTheFirstOfSeveralExceptions) {
  const ThreadPool pool(4);
  for (int first = 0; first < 3; ++first) {
    const auto throws = [&](int thread) {
      if (thread >= first) throw std::runtime_error(std::to_string(thread));
    };
    EXPECT_EQ(onehop::testing::thrown<std::runtime_error>([&] { pool.run(throws); }), std::to_string(first));
  }
}

TEST(ThreadPool, PoolsShareWorkersInTheSameOrder) {
  const std::vector<std::thread::id> first = threads_of(ThreadPool(4));
  EXPECT_EQ(first[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(first.begin(), first.end()).size(), 4);
  EXPECT_EQ(threads_of(ThreadPool(4, WaitStyle::sleep)), first);
  EXPECT_EQ(threads_of(ThreadPool(2)), (std::vector<std::thread::id>{first[0], first[1]}));
  EXPECT_EQ(threads_of(ThreadPool(4)), first);
}

TEST(ThreadPool, CallersOnDifferentThreadsAndInBodiesHaveDifferentWorkers) {
  const ThreadPool pool(3);
  std::set<std::thread::id> seen;
  std::mutex mutex;
  Barrier all(9);
  pool.run([&](int) {
    pool.run([&](int) {
      {
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
      }
      all.wait();  // all 9 exist at once
    });
  });
  EXPECT_EQ(seen.size(), 9);
}

TEST(ThreadPool, BarrierMakesThreadsGoInStep) {
  for (const WaitStyle style : both_styles) {
    const ThreadPool pool(3, style);
    Barrier barrier(3);
    std::vector<int> steps(3, 0);
    std::atomic<int> wrong{0};
    pool.run([&](int thread) {
      for (int step = 1; step <= 200; ++step) {
        steps[static_cast<std::size_t>(thread)] = step;
        barrier.wait();
        for (const int each : steps) wrong += each != step;
        barrier.wait();
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST(ThreadPool, PartsCoverTheRange) {
  const ThreadPool pool(3);
  std::int64_t next = -5;
  for (int thread = 0; thread < 3; ++thread) {
    const auto [first, last] = pool.part(-5, 12, thread);
    EXPECT_EQ(first, next);
    EXPECT_GE(last - first, 5);
    next = last;
  }
  EXPECT_EQ(next, 12);
}

TEST(ThreadPool, ParallelForTakesEachPieceOnce) {
  for (const int threads : {1, 3}) {
    std::vector<std::atomic<int>> taken(100);
    parallel_for(threads, taken.size(), 7, [&](std::uint64_t begin, std::uint64_t end) {
      EXPECT_LE(end - begin, 7);
      for (std::uint64_t i = begin; i < end; ++i) ++taken[i];
    });
    for (const auto& each : taken) EXPECT_EQ(each, 1);
  }
}

// Exit code of a child of this process that does `body`.
template <typename Body>
int exit_code_of_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::exit(body() ? 0 : 1);  // with the handlers of exit, as the leak sanitizer's
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

TEST(ThreadPool, AForkedChildEndsWithoutItsParentsWorkers) {
  const ThreadPool pool(3);
  pool.run([](int) {});
  EXPECT_EQ(exit_code_of_child([] { return true; }), 0);
  std::atomic<int> ran{0};
  pool.run([&](int) { ++ran; });
  EXPECT_EQ(ran, 3);
}

#if !defined(__SANITIZE_THREAD__)  // which ends a forked child that starts threads
TEST(ThreadPool, AForkedChildStartsItsOwnWorkers) {
  const ThreadPool pool(3);
  for (const WaitStyle style : both_styles) {
    pool.run([](int) {});
    const auto sums_in_child = [&] {
      std::atomic<int> sum{0};
      ThreadPool(3, style).run([&](int thread) { sum += 1 << thread; });
      pool.run([&](int thread) { sum += 8 << thread; });
      return sum == 63;
    };
    EXPECT_EQ(exit_code_of_child(sums_in_child), 0);
    EXPECT_EQ(exit_code_of_child([&] { return exit_code_of_child(sums_in_child) == 0; }), 0);
  }
}

// Another thread is within a run, or between two, when this one forks.
TEST(ThreadPool, AChildForkedDuringARunStartsItsOwnWorkers) {
  std::atomic<bool> end{false};
  std::atomic<bool> first_run_ended{false};
  std::thread other([&] {
    while (!end) {
      ThreadPool(3).run([](int) {});
      first_run_ended = true;
    }
  });
#if defined(__SANITIZE_ADDRESS__)
  // This sanitizer's allocator has locks that a fork does not take: a child of a fork while threads start may wait for
  // ever.
  while (!first_run_ended) std::this_thread::yield();
#endif
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(exit_code_of_child([] {
                std::atomic<int> ran{0};
                ThreadPool(3).run([&](int) { ++ran; });
                return ran == 3;
              }),
              0);
  }
  end = true;
  other.join();
}

TEST(ThreadPool, ThreadsThatTheSystemRefusesAreAnError) {
  EXPECT_EQ(exit_code_of_child([] {
              const rlimit none{0, 0};
              if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0)) return false;
              const ThreadPool pool(3);
              try {
                pool.run([](int) {});
              } catch (const Error& error) {
                const bool named = std::string(error.what()).find("cannot start 2 threads") != std::string::npos;
                _exit(named ? 0 : 1);  // the leak check of the address sanitizer cannot run as another user
              }
              return false;
            }),
            0);
}
#endif

TEST(ThreadCount, IsWhatTheCallerAsksForElseTheVariableElseTheShareOfTheCores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (int core = 0; core < 6; ++core) CPU_SET(core, &mask);
  EXPECT_EQ(thread_count(0, mask, 1), 6);
  EXPECT_EQ(thread_count(0, mask, 2), 3);
  EXPECT_EQ(thread_count(0, mask, 4), 1);
  EXPECT_EQ(thread_count(0, mask, 7), 1);
  EXPECT_EQ(thread_count(5, mask, 2), 5);
  setenv("ONEHOP_THREADS", "4", 1);
  EXPECT_EQ(thread_count(0, mask, 2), 4);
  EXPECT_EQ(thread_count(5, mask, 2), 5);
  EXPECT_EQ(thread_count(0, Group::alone()), 4);
  setenv("ONEHOP_THREADS", "", 1);  // as if it were unset
  EXPECT_EQ(thread_count(0, mask, 2), 3);
  setenv("ONEHOP_THREADS", "many", 1);
  EXPECT_THROW(static_cast<void>(thread_count(0, mask, 2)), BadInput);
  unsetenv("ONEHOP_THREADS");
  const cpu_set_t own = core_mask();
  EXPECT_EQ(thread_count(0), CPU_COUNT(&own));
  EXPECT_EQ(thread_count(0, Group::alone()), CPU_COUNT(&own));
  EXPECT_THROW(static_cast<void>(thread_count(-1)), BadInput);
  EXPECT_THROW(static_cast<void>(thread_count(env::max_threads + 1)), BadInput);
}

}  // namespace
}  // namespace onehop::base
