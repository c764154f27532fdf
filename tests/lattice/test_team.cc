// The threads of a rank: exceptions of every thread arrive, and a forked child neither waits for them nor uses them.
#include "lattice/support/team.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "onehop/group.h"

namespace onehop::lattice::detail {
namespace {

std::string thrown_by(Team& team, int thrower, std::atomic<int>& finished) {
  try {
    team.run([&](int thread) {
      if (thread == thrower) throw std::runtime_error("thread " + std::to_string(thread));
      usleep(2000);  // the caller must not go on before this
      ++finished;
    });
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Team, ThrowsWhatAThreadThrewAfterAllHaveEnded) {
  Team team(3);
  for (int thrower = 0; thrower < 3; ++thrower) {
    std::atomic<int> finished{0};
    EXPECT_EQ(thrown_by(team, thrower, finished), "thread " + std::to_string(thrower));
    EXPECT_EQ(finished, 2);
  }
  std::vector<int> seen(3, 0);
  team.run([&](int thread) { seen[static_cast<std::size_t>(thread)] = 1; });
  EXPECT_EQ(seen, std::vector<int>(3, 1));
}

TEST(Team, AForkedChildRunsAloneAndEnds) {
  static_cast<void>(Group::alone());  // from here on forks are counted
  auto team = std::make_unique<Team>(3);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int sum = 0;
    team->run([&](int thread) { sum += 1 << thread; });
    team.reset();
    _exit(sum == 7 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::atomic<int> here{0};
  team->run([&](int) { ++here; });
  EXPECT_EQ(here, 3);
}

}  // namespace
}  // namespace onehop::lattice::detail
