// The staggered operator on several ranks, and its solver.
#include "onehop/lattice/staggered.h"

#include <gtest/gtest.h>

#include "onehop/error.h"
#include "tests/support/lattice_fields.h"
#include "tests/support/ranks.h"

namespace onehop::lattice {
namespace {

using Number = std::complex<double>;

TEST(LatticeStaggered, TheSameOnEveryGrid) {
  const auto work = [](const Group& group, const std::vector<int>& grid) {
    Gauge gauge(group, {4, 4, 4, 8}, grid);
    gauge.set_random(2);
    Staggered staggered(gauge);
    const auto solved = staggered.solve(testing::plane_wave(gauge, 3), 0.5, {.tolerance = 1e-9});
    EXPECT_TRUE(solved.report.converged);
    return testing::square_over_ranks(group, solved.solutions);
  };
  const double expected = work(Group::alone(), {1, 1, 1, 1});
  for (const std::vector<int>& grid : {std::vector<int>{1, 1, 1, 2}, {2, 1, 2, 1}}) {
    testing::on_threads(grid[0] * grid[2] * grid[3],
                        [&](const Group& group) { EXPECT_NEAR(work(group, grid), expected, 1e-7 * expected); });
  }
}

TEST(LatticeStaggered, SaysWhatIsWrong) {
  Gauge gauge(Group::alone(), {4, 4}, {1, 1});
  Staggered staggered(gauge);
  EXPECT_THROW((void)staggered.dslash(std::vector<Number>(3)), BadInput);
  EXPECT_THROW((void)staggered.solve(std::vector<Number>(48), 0), BadInput);
}

}  // namespace
}  // namespace onehop::lattice
