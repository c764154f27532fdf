// Gauge fields have the same bits on several ranks as on one.
#include "onehop/lattice/gauge.h"

#include <gtest/gtest.h>

#include "onehop/error.h"
#include "tests/support/ranks.h"

namespace onehop::lattice {
namespace {

using Number = std::complex<double>;

Plaquettes generate(const Group& group, const std::vector<int>& grid) {
  Gauge gauge(group, {4, 4, 4, 8}, grid);
  gauge.set_random(3);
  for (std::uint32_t sweep = 0; sweep < 2; ++sweep) {
    gauge.heat_bath(5.7, 11, sweep);
    gauge.over_relax();
  }
  EXPECT_LE(gauge.deviation().value, 1e-14);
  return gauge.plaquettes();
}

TEST(LatticeGauge, TheSameBitsOnEveryGrid) {
  const Plaquettes expected = generate(Group::alone(), {1, 1, 1, 1});
  for (const std::vector<int>& grid : {std::vector<int>{1, 1, 1, 2}, {2, 1, 1, 2}, {1, 2, 2, 2}}) {
    int ranks = 1;
    for (const int cuts : grid) ranks *= cuts;
    testing::on_threads(ranks, [&](const Group& group) {
      const Plaquettes found = generate(group, grid);
      EXPECT_EQ(found.all, expected.all);
      EXPECT_EQ(found.space, expected.space);
      EXPECT_EQ(found.time, expected.time);
    });
  }
}

TEST(LatticeGauge, SaysWhatIsWrong) {
  EXPECT_THROW(Gauge(Group::alone(), {4}, {1}), BadInput);
  EXPECT_THROW(Gauge(Group::alone(), {4, 4}, {2, 1}), BadInput);
  Gauge gauge(Group::alone(), {4, 3}, {1, 1});
  EXPECT_THROW(gauge.over_relax(), BadInput);
  EXPECT_THROW(gauge.heat_bath(-1, 1, 0), BadInput);
  EXPECT_THROW(gauge.set_links(std::vector<Number>(9)), BadInput);
}

// Averages are exact also for fat links, which may be large, and NaN if a link is not finite.
TEST(LatticeGauge, AveragesOfLinksOfAnySize) {
  const auto plaquette_of = [](const Group& group, double size) {
    Gauge gauge(group, {4, 4, 4, 2 * group.size()}, {1, 1, 1, group.size()});
    std::vector<std::complex<double>> links = gauge.links();
    for (auto& number : links) number *= size;
    gauge.set_links(links);
    return gauge.plaquettes().all;
  };
  testing::on_threads(2, [&](const Group& group) {
    for (const double size : {1.0, 8.0, 256.0}) EXPECT_EQ(plaquette_of(group, size), std::pow(size, 4));
    EXPECT_TRUE(std::isnan(plaquette_of(group, 1e10)));
    EXPECT_TRUE(std::isnan(plaquette_of(group, group.rank() == 1 ? std::nan("") : 1)));
  });
}

}  // namespace
}  // namespace onehop::lattice
