#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "onehop/error.h"
#include "src/channel/staging.h"
#include "tests/support/ranks.h"

namespace onehop {
namespace {

using onehop::testing::on_ranks;
using onehop::testing::on_threads;

TEST(SharedAreas, EveryRankReadsWhatTheOthersWrote) {
  const auto rank_main = [](const Group& group) {
    const std::int64_t bytes = 10000 + 5000 * group.rank();  // lengths may differ
    const SharedAreas areas(group, bytes);
    ASSERT_TRUE(areas.exist());
    EXPECT_GE(areas.back(), bytes);
    EXPECT_EQ(areas.back(), 0);  // it is there already
    EXPECT_EQ(areas.own(), areas.of(group.rank()));
    std::memset(areas.own(), 'a' + group.rank(), static_cast<std::size_t>(bytes));
    group.barrier();
    for (int r = 0; r < group.size(); ++r) {
      const auto written = static_cast<std::byte>('a' + r);
      EXPECT_EQ(areas.of(r)[0], written);
      EXPECT_EQ(areas.of(r)[9999 + 5000 * r], written);
    }
    group.barrier();
  };
  on_ranks(3, rank_main);
  on_threads(3, rank_main);
}

TEST(SharedAreas, NoneUnlessMade) { EXPECT_FALSE(SharedAreas().exist()); }

TEST(SharedAreas, ARankThatMakesAnotherStepIsAMismatch) {
  on_threads(2, [](const Group& group) {
    if (group.rank() == 1) {
      static_cast<void>(group.allgather({}));
    } else {
      EXPECT_THROW(SharedAreas(group, 4096), Mismatch);
    }
  });
}

}  // namespace
}  // namespace onehop
