// Shared memory beyond the limits that the system sets for a process.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "onehop/group.h"
#include "src/base/memory_left.h"
#include "src/group/memory_pools.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using testing::on_ranks;

// The system would end the process by a signal.
TEST(MemoryLimits, SharedMemoryBeyondTheFileLimitIsAnError) {
  on_ranks(1, [](const Group& group) {
    const struct rlimit limit{1 << 20, 1 << 20};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_EQ(group.allocate(1 << 20).bytes().size(), std::size_t{1} << 20);
    try {
      static_cast<void>(group.allocate(2 << 20));
      FAIL();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "cannot make 2 MiB of shared memory for an array of the group: the limit of the size of files is 1 "
                   "MiB; raise `ulimit -f`");
    }
  });
}

TEST(MemoryLimits, SharedMemoryWithoutAFreeDescriptorIsAnError) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer needs a free descriptor to check the types of objects";
#endif
  on_ranks(1, [](const Group& group) {
    struct rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 0;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    testing::expect_says([&] { static_cast<void>(group.allocate(1)); }, "raise `ulimit -n`");
  });
}

TEST(MemoryLimits, OfAMachineAndAControlGroupTheTighterOneIsNamed) {
  constexpr std::int64_t gib = 1 << 30;
  on_ranks(2, [](const Group& group) {
    const auto told = [&](std::int64_t machine, std::int64_t control_group) {
      const std::vector<detail::MemoryLeft> left(2, {machine, control_group, 8});
      return testing::thrown(
          [&] { detail::check_memory(*group.state(), std::vector{9 * gib, gib}, left, "it", "stop"); });
    };
    const std::string start = "not enough memory for it: rank 0 needs 9 GiB, all 2 ranks of its ";
    EXPECT_EQ(told(5 * gib, gib),
              start + "control group 10 GiB together, and 1 GiB were available in its control group; stop");
    EXPECT_EQ(told(2 * gib, 3 * gib), start + "machine 10 GiB together, and 2 GiB were available on its machine; stop");
  });
}

// A process of a group of version 1 or 2 with a limit of 400 bytes, in a group with a limit of 1000.
class ControlGroups : public ::testing::TestWithParam<int> {
 protected:
  ControlGroups() : second_(GetParam() == 2) {
    write("proc/self/cgroup", second_ ? "0::/jobs/one\n" : "9:name=systemd:/\n4:hugetlb,memory:/jobs/one\n0::/\n");
    write_group("jobs", "1000", "500", 0, 0);
  }
  ~ControlGroups() override { std::filesystem::remove_all(root_); }
  ControlGroups(const ControlGroups&) = delete;
  ControlGroups& operator=(const ControlGroups&) = delete;

  void write_group(const std::string& group, const std::string& limit, const std::string& usage, int inactive,
                   int active) {
    const std::string folder = (second_ ? "sys/fs/cgroup/" : "sys/fs/cgroup/memory/") + group;
    const std::string prefix = second_ ? "" : "total_";
    write(folder + (second_ ? "/memory.max" : "/memory.limit_in_bytes"), limit + "\n");
    write(folder + (second_ ? "/memory.current" : "/memory.usage_in_bytes"), usage + "\n");
    write(folder + "/memory.stat", "anon 1\n" + prefix + "inactive_file " + std::to_string(inactive) + "\n" + prefix +
                                       "active_file " + std::to_string(active) + "\nslab 7\n");
  }
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] std::int64_t left() const { return detail::memory_left(root_.string()).control_group; }
  [[nodiscard]] std::int64_t limit() const { return detail::memory_left(root_.string()).limit; }

 private:
  bool second_;
  std::filesystem::path root_ = std::filesystem::temp_directory_path() /
                                ("onehop_groups_" + std::to_string(getpid()) + "_" + std::to_string(GetParam()));
};

TEST_P(ControlGroups, TheTightestLimitCounts) {
  write_group("jobs/one", "400", "100", 0, 0);
  EXPECT_EQ(left(), 300);
  EXPECT_EQ(limit(), 400);
  write_group("jobs/one", "900", "100", 0, 0);
  EXPECT_EQ(left(), 500);
  EXPECT_EQ(limit(), 900);
}

// A group that has read files has them in its page cache until it needs the memory.
TEST_P(ControlGroups, CachedFilesAreNotInUse) {
  write_group("jobs/one", "400", "390", 200, 50);
  EXPECT_EQ(left(), 260);
  write_group("jobs/one", "400", "390", 500, 0);
  EXPECT_EQ(left(), 400);
}

// Beyond memory.high a process hardly runs.
TEST_P(ControlGroups, AThrottledGroupIsFull) {
  if (GetParam() == 1) GTEST_SKIP() << "version 1 has no such limit";
  write_group("jobs/one", "400", "100", 0, 0);
  write("sys/fs/cgroup/jobs/one/memory.high", "350\n");
  EXPECT_EQ(left(), 250);
  EXPECT_EQ(limit(), 350);
  write("sys/fs/cgroup/jobs/one/memory.high", "max\n");
  EXPECT_EQ(left(), 300);
}

INSTANTIATE_TEST_SUITE_P(Versions, ControlGroups, ::testing::Values(1, 2));

}  // namespace
}  // namespace onehop
