// Gauge fixing, HYP smearing, loops and improved flows have the same bits on several ranks as on one, and
// gauge-invariant observables do not change.
#include "onehop/lattice/fixing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onehop/error.h"
#include "onehop/lattice/flow.h"
#include "onehop/lattice/loops.h"
#include "onehop/lattice/smearing.h"
#include "tests/support/ranks.h"

namespace onehop::lattice {
namespace {

std::vector<double> observables(const Group& group, const std::vector<int>& grid) {
  Gauge gauge(group, {4, 4, 4, 4}, grid);
  gauge.set_random(3);
  for (std::uint32_t sweep = 0; sweep < 2; ++sweep) gauge.heat_bath(6, 11, sweep);
  const double before = gauge.plaquettes().all;
  int told = 0;
  const FixedGauge fixed = fix_gauge(gauge, {.tolerance = 1e-4}, [&](const FixedGauge& now) { told = now.sweeps; });
  EXPECT_LE(fixed.theta, 1e-4);
  EXPECT_EQ(told, fixed.sweeps);
  EXPECT_NEAR(gauge.plaquettes().all, before, 1e-13);
  std::vector<double> found = wilson_loops(gauge, 2, 2);
  EXPECT_NEAR(found[0], gauge.plaquettes().time, 1e-14);
  smear_hyp(gauge);
  Flow flow(gauge, FlowAction::zeuthen);
  flow.step(0.05);
  flow.copy_to(gauge);
  EXPECT_LE(gauge.deviation().value, 1e-13);
  found.insert(found.end(),
               {fixed.theta, fixed.functional, flow.field_strength().energy_clover, improved_charge(gauge)});
  return found;
}

TEST(LatticeFixing, TheSameBitsOnEveryGrid) {
  const std::vector<double> expected = observables(Group::alone(), {1, 1, 1, 1});
  for (const std::vector<int>& grid : {std::vector<int>{1, 1, 1, 2}, {2, 1, 2, 1}}) {
    testing::on_threads(grid[0] * grid[2] * grid[3],
                        [&](const Group& group) { EXPECT_EQ(observables(group, grid), expected); });
  }
}

TEST(LatticeFixing, SaysWhatIsWrong) {
  Gauge gauge(Group::alone(), {4, 4, 4, 4}, {1, 1, 1, 1});
  gauge.set_random(3);
  const auto links = gauge.links();
  EXPECT_THROW(fix_gauge(gauge, {.most_sweeps = 12}), Error);
  EXPECT_THROW(fix_gauge(gauge, {.over_relaxation = 2}), BadInput);
  EXPECT_THROW(fix_gauge(gauge, {.tolerance = 0}), BadInput);
  EXPECT_EQ(gauge.links(), links);
  Gauge odd(Group::alone(), {4, 3}, {1, 1});
  EXPECT_THROW(fix_gauge(odd), BadInput);
  EXPECT_THROW((void)wilson_loops(gauge, 5, 1), BadInput);
}

}  // namespace
}  // namespace onehop::lattice
