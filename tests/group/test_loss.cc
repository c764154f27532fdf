// A rank that a peer reports as lost, without having lost it itself.
#include "src/group/loss.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "src/base/clock.h"
#include "tests/support/ranks.h"

namespace onehop {
namespace {

TEST(Loss, IsTheOneThatAPeerReports) {
  std::atomic<bool> seen{false};
  testing::on_threads(3, [&](const Group& group) {
    EXPECT_EQ(group.gone_rank(), -1);
    group.barrier();
    if (group.rank() == 0) report_loss(group, 2);
    if (group.rank() == 1) {
      const double end = base::steady_seconds() + 20;
      while (group.gone_rank() < 0 && base::steady_seconds() < end) std::this_thread::yield();
      EXPECT_EQ(group.gone_rank(), 2);
      seen = true;
      seen.notify_all();
    }
    seen.wait(false);  // a rank that leaves before would be gone, too
  });
}

TEST(Loss, IgnoresNumbersThatAreNoRanks) {
  testing::on_threads(2, [](const Group& group) {
    group.barrier();
    if (group.rank() == 0) {
      report_loss(group, -1);
      report_loss(group, 2);
    }
    group.barrier();
    EXPECT_EQ(group.gone_rank(), -1);
    group.barrier();
  });
}

}  // namespace
}  // namespace onehop
