#include "tests/support/ranks.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "onehop/error.h"
#include "src/group/control_memory.h"
#include "src/group/group_state.h"

namespace onehop::testing {
namespace {

// A rank that runs longer hangs. ctest allows a test 60 s, and 300 s with a sanitizer, which makes some ranks twenty
// times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::chrono::seconds longest_run{240};
#else
constexpr std::chrono::seconds longest_run{50};
#endif

[[noreturn]] void be_rank(const std::string& control, int rank, int ranks, int out,
                          const std::function<void(const Group&)>& rank_main) {
  int code = 0;
  std::string message;
  try {
    const Group group(
        detail::make_group(rank, ranks, "launcher", detail::join_control_memory(control, rank, ranks, getppid())));
    rank_main(group);
    if (::testing::Test::HasFailure()) code = 1, message = "an expectation failed (see above)";
  } catch (const PeerLost& error) {
    code = 3, message = error.what();
  } catch (const BadInput& error) {
    code = 2, message = error.what();
  } catch (const std::exception& error) {
    code = 1, message = error.what();
  }
  if (!message.empty()) static_cast<void>(!write(out, message.data(), message.size()));
  std::fflush(nullptr);
  _exit(code);
}

std::string read_all(int fd) {
  std::string text;
  char buffer[1024];
  for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(got));
  close(fd);
  return text;
}

}  // namespace

std::vector<Ended> fork_ranks(int ranks, const std::function<void(const Group&)>& rank_main,
                              const ForkOptions& options) {
  const detail::ControlMemory control = detail::ControlMemory::create(ranks);
  std::vector<int> pids;
  std::vector<int> outs;
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    int ends[2];
    if (pipe(ends) != 0) throw Error("no pipe");
    const int pid = fork();
    if (pid == 0) {
      close(ends[0]);
      be_rank(control.path(), rank, ranks, ends[1], rank_main);
    }
    close(ends[1]);
    pids.push_back(pid);
    outs.push_back(ends[0]);
  }
  if (options.meanwhile) options.meanwhile(pids);
  const auto end = std::chrono::steady_clock::now() + longest_run;
  std::vector<Ended> ended(static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < ended.size(); ++r) {
    int status = 0;
    bool late = false;
    while (waitpid(pids[r], &status, WNOHANG) == 0) {
      if (!late && std::chrono::steady_clock::now() > end) {
        late = true;
        kill(pids[r], SIGKILL);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ended[r].signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ended[r].exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ended[r].ok = ended[r].exit_code == 0 && !late;
    ended[r].message = read_all(outs[r]) + (late ? " (killed: it ran longer than the test allows)" : "");
  }
  return ended;
}

void on_ranks(int ranks, const std::function<void(const Group&)>& rank_main) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ranks that are processes";
#endif
  const auto ended = fork_ranks(ranks, rank_main);
  for (int r = 0; r < ranks; ++r) {
    const Ended& rank = ended[static_cast<std::size_t>(r)];
    EXPECT_TRUE(rank.ok) << "rank " << r << " of " << ranks << ": exit code " << rank.exit_code << ", signal "
                         << rank.signal << ": " << rank.message;
  }
}

void on_threads(int ranks, const std::function<void(const Group&)>& rank_main) {
  // An all-gather between threads: everybody writes, the last one wakes the others, everybody copies.
  struct Table {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::vector<std::byte>> given;
    Gathered complete;
    int count = 0;
    std::uint64_t generation = 0;
  } table;
  table.given.resize(static_cast<std::size_t>(ranks));
  const auto gather = [&](int rank, std::span<const std::byte> mine) {
    std::unique_lock lock(table.mutex);
    table.given[static_cast<std::size_t>(rank)].assign(mine.begin(), mine.end());
    const std::uint64_t generation = table.generation;
    if (++table.count == ranks) {
      table.count = 0;
      table.complete = table.given;
      ++table.generation;
      table.changed.notify_all();
    }
    if (!table.changed.wait_for(lock, std::chrono::seconds(30), [&] { return table.generation != generation; })) {
      throw Timeout("a thread did not come to the all-gather");
    }
    return table.complete;
  };
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        rank_main(Group::from_allgather(rank, ranks,
                                        [&, rank](std::span<const std::byte> mine) { return gather(rank, mine); }));
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace onehop::testing
