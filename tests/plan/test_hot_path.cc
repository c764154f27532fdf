// `start` and `finish` of a plan or an all-reduce in shared memory, while no rank sleeps: no allocation, no system
// call, no lock. tools/hot_path.sh counts the instructions of the same code.
//
// Allocations and locks are counted by functions of the same name in this program that pass on to the C library's.
// System calls are caught by the kernel (seccomp) in a forked process, which they end.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "onehop/collectives/collectives.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "src/channel/wait_limits.h"
#include "tests/support/ranks.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define ONEHOP_COUNTS_CALLS 0
#else
#define ONEHOP_COUNTS_CALLS 1
#endif

namespace {

std::atomic<bool> counting{false};
std::atomic<int> allocations{0};
std::atomic<int> locks{0};

#if ONEHOP_COUNTS_CALLS
void count(std::atomic<int>& calls) {
  if (counting.load(std::memory_order_relaxed)) calls.fetch_add(1, std::memory_order_relaxed);
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#endif

}  // namespace

#if ONEHOP_COUNTS_CALLS
extern "C" {
// The C library's own names of its allocator, for programs that put their own in front.
void* __libc_malloc(std::size_t bytes);                           // NOLINT
void* __libc_calloc(std::size_t count, std::size_t bytes);        // NOLINT
void* __libc_realloc(void* at, std::size_t bytes);                // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t bytes);  // NOLINT

void* malloc(std::size_t bytes) noexcept {
  count(allocations);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) noexcept {
  count(allocations);
  return __libc_calloc(number, bytes);
}
void* realloc(void* at, std::size_t bytes) noexcept {
  count(allocations);
  return __libc_realloc(at, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  count(allocations);
  return __libc_memalign(alignment, bytes);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  // Without a guarded static: libc++abi takes a lock to initialise one.
  using Lock = int (*)(pthread_mutex_t*);
  static constinit std::atomic<Lock> known{nullptr};
  Lock forward = known.load(std::memory_order_relaxed);
  if (forward == nullptr) {
    forward = next<Lock>("pthread_mutex_lock");
    known.store(forward, std::memory_order_relaxed);
  }
  count(locks);
  return forward(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static const auto forward = next<int (*)(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  count(locks);
  return forward(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  static const auto forward = next<int (*)(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  count(locks);
  return forward(lock);
}
}
#endif

namespace onehop {

// The measured rank's part, under names by which a profiler can select it.
__attribute__((noinline)) void hot_path_start(Plan& plan) { plan.start(); }
__attribute__((noinline)) void hot_path_finish(Plan& plan) { plan.finish(); }

namespace {

using testing::on_ranks;
using testing::on_threads;

// Eleven ranks, each a neighbour of the ten others, all in this process, and once prepared all in one thread. This
// works because start() never waits and finish() finds all messages. Nothing depends on timing.
class ElevenRanks {
 public:
  static constexpr int ranks = 11;
  static constexpr int measured = 5;

  explicit ElevenRanks(std::int64_t bytes, TransportKind transport = TransportKind::shared_memory) : words_(bytes / 8) {
    memory_.resize(ranks);
    plans_.resize(ranks);
    on_threads(ranks, [&](const Group& group) {
      const auto r = static_cast<std::size_t>(group.rank());
      memory_[r].resize(static_cast<std::size_t>(words_ * ranks));
      const std::vector<std::span<std::byte>> arrays = {std::as_writable_bytes(std::span(memory_[r]))};
      PlanOptions options;
      options.transport = transport;
      plans_[r] = std::make_unique<Plan>(group, allgather(ranks, words_, 8), arrays, options);
    });
  }

  // One exchange of all ranks; calls before() and after() around the measured rank's part.
  template <class Before, class After>
  void run(const Before& before, const After& after) {
    for (int r = 0; r < ranks; ++r) measure(r, hot_path_start, before, after);
    for (int r = 0; r < ranks; ++r) measure(r, hot_path_finish, before, after);
  }
  void run() {
    run([] {}, [] {});
  }

  // Fills all blocks for run number `run`.
  void fill(std::int64_t run) {
    for (int r = 0; r < ranks; ++r) {
      auto& mine = memory_[static_cast<std::size_t>(r)];
      std::fill(mine.begin(), mine.end(), -1);
      for (std::int64_t i = 0; i < words_; ++i) mine[static_cast<std::size_t>(r * words_ + i)] = value(run, r, i);
    }
  }
  [[nodiscard]] bool complete(std::int64_t run) const {
    for (const auto& mine : memory_) {
      for (int r = 0; r < ranks; ++r) {
        for (std::int64_t i = 0; i < words_; ++i) {
          if (mine[static_cast<std::size_t>(r * words_ + i)] != value(run, r, i)) return false;
        }
      }
    }
    return true;
  }

 private:
  static std::int64_t value(std::int64_t run, int rank, std::int64_t i) { return run * 1'000'000 + rank * 10'000 + i; }

  template <class Before, class After>
  void measure(int rank, void (*step)(Plan&), const Before& before, const After& after) {
    Plan& plan = *plans_[static_cast<std::size_t>(rank)];
    if (rank != measured) {
      step == hot_path_start ? plan.start() : plan.finish();
      return;
    }
    before();
    step(plan);
    after();
  }

  std::int64_t words_;
  std::vector<std::vector<std::int64_t>> memory_;
  std::vector<std::unique_ptr<Plan>> plans_;
};

// -- allocations and locks -----------------------------------------------------------------------------------------

struct Counted {
  int allocations;
  int locks;
};

Counted count_calls(const std::function<void()>& what) {
  allocations = 0;
  locks = 0;
  counting = true;
  what();
  counting = false;
  return {allocations, locks};
}

TEST(HotPath, TheCountersCount) {
  if (!ONEHOP_COUNTS_CALLS) GTEST_SKIP() << "calls are counted only without sanitizers, with the GNU C library";
  std::mutex mutex;
  std::unique_ptr<int> number;
  const Counted counted = count_calls([&] {
    const std::lock_guard lock(mutex);
    number = std::make_unique<int>(1);
    const std::vector<int> numbers(1000, *number);
    *number = numbers[7];
  });
  EXPECT_EQ(counted.allocations, 2);
  EXPECT_EQ(counted.locks, 1);
}

TEST(HotPath, NoAllocationAndNoLock) {
  if (!ONEHOP_COUNTS_CALLS) GTEST_SKIP() << "calls are counted only without sanitizers, with the GNU C library";
  // One chunk beside its flag; one chunk; several chunks and fragments are in NoSystemCallBetweenProcesses.
  for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{64}, std::int64_t{4096}, std::int64_t{64} << 10}) {
    ElevenRanks all(bytes);
    for (int run = 0; run < 10; ++run) {
      all.fill(run);
      const Counted counted = count_calls([&] { all.run(); });
      EXPECT_EQ(counted.allocations, 0) << bytes << " bytes, run " << run;
      EXPECT_EQ(counted.locks, 0) << bytes << " bytes, run " << run;
      EXPECT_TRUE(all.complete(run)) << bytes << " bytes, run " << run;
    }
  }
}

// -- system calls --------------------------------------------------------------------------------------------------

constexpr int caught = 9;  // exit code of a process that made a system call

// Makes every later system call of this thread end the process, except write, exit and return from a signal handler.
void forbid_system_calls() {
  struct sigaction action{};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    char text[] = "system call number    was made\n";
    int number = info->si_syscall;
    for (std::size_t at = 20; number > 0; number /= 10) text[at--] = static_cast<char>('0' + number % 10);
    static_cast<void>(!write(2, text, sizeof text - 1));
    _exit(caught);
  };
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  constexpr auto load_number = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  sock_filter rules[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, load_number},     {BPF_JMP | BPF_JEQ | BPF_K, 3, 0, SYS_write},
      {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_exit_group}, {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_rt_sigreturn},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP},         {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{sizeof rules / sizeof rules[0], rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(77);
}

// Runs `work` in a forked process and returns its exit code; 77: the kernel cannot forbid system calls.
int exit_code_of(const std::function<void()>& work) {
  const int pid = fork();
  if (pid == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool can_forbid() { return ONEHOP_COUNTS_CALLS && exit_code_of(forbid_system_calls) == 0; }

TEST(HotPath, SystemCallsAreCaught) {
  if (!can_forbid()) GTEST_SKIP() << "system calls cannot be forbidden here (sanitizer, or no seccomp)";
  EXPECT_EQ(exit_code_of([] {
              forbid_system_calls();
              syscall(SYS_getppid);
            }),
            caught);
}

TEST(HotPath, NoSystemCall) {
  if (!can_forbid()) GTEST_SKIP() << "system calls cannot be forbidden here (sanitizer, or no seccomp)";
  for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{4096}, std::int64_t{64} << 10}) {
    const int code = exit_code_of([&] {
      ElevenRanks all(bytes);
      all.fill(0);
      all.run();
      forbid_system_calls();
      for (int run = 0; run < 100; ++run) all.run();
      // No clean-up, which would make system calls.
      _exit(all.complete(0) ? 0 : 1);
    });
    EXPECT_EQ(code, 0) << bytes << " bytes" << (code == caught ? ": a system call was made" : "");
  }
}

// The same between two processes that run at the same time and spin as long as they must wait, with long messages in
// many chunks and fragments.
TEST(HotPath, NoSystemCallBetweenProcesses) {
  if (!can_forbid()) GTEST_SKIP() << "system calls cannot be forbidden here (sanitizer, or no seccomp)";
  for (const std::int64_t words : {8, 1 << 15}) {
    on_ranks(2, [&](const Group& group) {
      std::vector<std::int64_t> memory(static_cast<std::size_t>(2 * words), group.rank());
      const std::vector<std::span<std::byte>> arrays = {std::as_writable_bytes(std::span(memory))};
      PlanOptions options{.slot_bytes = 64 << 10, .chunk_bytes = 8 << 10};
      Plan plan(group, allgather(2, words, 8), arrays, options);
      plan.run();
      // Set only now, because making the plan reads the tuning, which sets these limits.
      detail::wait_limits.spins = detail::wait_limits.spins_oversubscribed = INT_MAX;
      group.barrier();
      forbid_system_calls();
      for (int run = 0; run < 50; ++run) plan.run();
      const auto there = static_cast<std::size_t>((1 - group.rank()) * words);
      _exit(memory[there] == 1 - group.rank() && memory[there + static_cast<std::size_t>(words) - 1] == 1 - group.rank()
                ? 0
                : 1);
    });
  }
}

// Index bits that are swapped directly between the arrays of two processes.
TEST(HotPath, NoSystemCallInAnExchangeInPlace) {
  if (!can_forbid()) GTEST_SKIP() << "system calls cannot be forbidden here (sanitizer, or no seccomp)";
  on_ranks(2, [&](const Group& group) {
    SharedArray state = group.allocate(8 << 10);
    std::memset(state.bytes().data(), group.rank(), state.bytes().size());
    const std::vector<std::span<std::byte>> arrays = {state.bytes()};
    Plan plan(
        group,
        permute_bits(
            {.bits = 11, .local_bits = 10, .permutation = {10, 2, 1, 3, 4, 5, 6, 7, 8, 9, 0}, .element_bytes = 8}),
        arrays);
    plan.run();
    detail::wait_limits.spins = detail::wait_limits.spins_oversubscribed = INT_MAX;
    group.barrier();
    forbid_system_calls();
    for (int run = 0; run < 50; ++run) plan.run();
    // After 51 runs, an element with bit 0 set comes from rank 1.
    _exit(state.bytes()[0] == std::byte{0} && state.bytes()[8] == std::byte{1} ? 0 : 1);
  });
}

// All-reduces, raw and through codecs, of several lengths, algorithms and lists of arrays: prepared and run once, they
// allocate nothing, lock nothing and make no system call.
TEST(HotPath, NothingInAnAllReduce) {
  if (!can_forbid()) GTEST_SKIP() << "system calls cannot be forbidden here (sanitizer, or no seccomp)";
  constexpr std::int64_t lengths[] = {2, 1000, 40000, 1100000};
  on_ranks(2, [&](const Group& group) {
    const collectives::Collectives collectives(group);
    std::vector<collectives::Collective> operations;
    for (const std::int64_t elements : lengths) {
      for (const Codec codec : {Codec::raw, Codec::fp16, Codec::q8}) {
        for (const auto algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
          operations.push_back(
              collectives.allreduce({elements, ElementType::float32, collectives::ReduceOp::mean, codec, algorithm}));
        }
      }
    }
    std::vector<float> numbers(static_cast<std::size_t>(lengths[3]), static_cast<float>(group.rank()));
    std::byte* const first = reinterpret_cast<std::byte*>(numbers.data());
    const auto run_all = [&] {
      for (collectives::Collective& operation : operations) {
        const std::span<std::byte> array(first, static_cast<std::size_t>(operation.source_bytes()));
        operation.run(array, array);
        const std::int64_t elements = operation.source_bytes() / 4;
        const collectives::Part parts[] = {{first, first, 1}, {first + 4, first + 4, elements - 1}};
        operation.start(parts);
        operation.finish();
      }
      collectives.barrier();
    };
    run_all();
    detail::wait_limits.spins = detail::wait_limits.spins_oversubscribed = INT_MAX;
    group.barrier();
    forbid_system_calls();
    const Counted counted = count_calls(run_all);
    // The mean of 0 and 1, and of halves from then on, each time rounded by the codecs.
    const auto is_half = [](float number) { return number > 0.4F && number < 0.6F; };
    const bool right = is_half(numbers.front()) && is_half(numbers.back());
    _exit(right && counted.allocations == 0 && counted.locks == 0 ? 0 : 1);
  });
}

// -- instructions --------------------------------------------------------------------------------------------------

// tools/hot_path.sh runs this under callgrind, which counts only inside hot_path_start and hot_path_finish.
TEST(HotPath, TenNeighboursOf64Bytes) {
  ElevenRanks all(64);
  all.fill(0);
  for (int run = 0; run < 1000; ++run) all.run();
  EXPECT_TRUE(all.complete(0));
}

}  // namespace
}  // namespace onehop
