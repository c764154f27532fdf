// Wilson quarks, with threads of this process as ranks, and errors for wrong options.
#include "onehop/lattice/wilson.h"

#include <gtest/gtest.h>

#include "onehop/error.h"
#include "onehop/lattice/clover.h"
#include "tests/support/lattice_fields.h"
#include "tests/support/ranks.h"

namespace onehop::lattice {
namespace {

using Number = std::complex<double>;

TEST(LatticeWilson, TheSameOnEveryGrid) {
  const auto work = [](const Group& group, const std::vector<int>& grid) {
    Gauge gauge(group, {4, 4, 4, 8}, grid);
    gauge.set_random(2);
    Wilson wilson(gauge, {.kappa = 0.11, .csw = 1.3, .threads = group.size() == 1 ? 2 : 1});
    const auto source = testing::plane_wave(gauge, 12);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(wilson.apply(source, i % 2 == 0).size(), source.size());
    SolverOptions options;
    options.tolerance = 1e-9;
    options.sloppy_precision = Precision::single;
    const auto solved = wilson.solve(source, options);
    EXPECT_TRUE(solved.report.converged);
    EXPECT_GT(solved.report.reliable_updates, 0);
    const auto again = wilson.apply(solved.solution);
    double error = 0;
    for (std::size_t i = 0; i < again.size(); ++i) error = std::max(error, std::abs(again[i] - source[i]));
    EXPECT_LE(error, 1e-7);
    return testing::square_over_ranks(group, solved.solution);
  };
  const double expected = work(Group::alone(), {1, 1, 1, 1});
  for (const std::vector<int>& grid : {std::vector<int>{1, 1, 1, 2}, {2, 1, 2, 1}}) {
    testing::on_threads(grid[0] * grid[2] * grid[3],
                        [&](const Group& group) { EXPECT_NEAR(work(group, grid), expected, 1e-7 * expected); });
  }
}

TEST(LatticeWilson, CloverBlocksAndInverses) {
  Gauge gauge(Group::alone(), {2, 2, 4, 2}, {1, 1, 1, 1});
  gauge.set_random(5);
  const auto blocks = clover_blocks(clover_leaves(gauge), 0.1);
  const auto a = whole_blocks(blocks);
  const auto b = whole_blocks(inverse_blocks(blocks));
  ASSERT_EQ(a.size(), 32U * 2 * 36);
  for (std::size_t n = 0; n < a.size() / 36; ++n) {
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t j = 0; j < 6; ++j) {
        Number sum = i == j ? -1 : 0;
        for (std::size_t k = 0; k < 6; ++k) sum += a[36 * n + 6 * i + k] * b[36 * n + 6 * k + j];
        EXPECT_LE(std::abs(sum), 1e-13);
      }
    }
  }
  EXPECT_THROW((void)inverse_blocks(std::vector<double>(72)), Error);
}

TEST(LatticeWilson, SaysWhatIsWrong) {
  Gauge gauge(Group::alone(), {4, 4, 4, 4}, {1, 1, 1, 1});
  Wilson wilson(gauge);
  EXPECT_THROW((void)wilson.dslash(std::vector<Number>(3)), BadInput);
  EXPECT_THROW((void)wilson.solve(testing::plane_wave(gauge, 12), {}, {WilsonMethod::cgnr, 3}), BadInput);
  EXPECT_THROW(Wilson(gauge, {.kappa = std::nan("")}), BadInput);
  EXPECT_THROW((void)wilson_kappa(-4), BadInput);
  EXPECT_THROW((void)clover_leaves(Gauge(Group::alone(), {4, 4}, {1, 1})), BadInput);
}

}  // namespace
}  // namespace onehop::lattice
