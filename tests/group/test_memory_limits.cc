// Shared memory beyond the limits that the system sets for a process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "onehop/error.h"
#include "onehop/group.h"
#include "tests/support/ranks.h"

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
    try {
      static_cast<void>(group.allocate(1));
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("raise `ulimit -n`"), std::string::npos) << error.what();
    }
  });
}

}  // namespace
}  // namespace onehop
