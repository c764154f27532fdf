// The staggered operator on several ranks, and its solver.
#include "onehop/lattice/staggered.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onehop/error.h"
#include "support/ranks.h"

namespace onehop::lattice {
namespace {

using Number = std::complex<double>;

// A number for every site of the whole lattice.
std::vector<Number> wave(const Gauge& gauge) {
  const Geometry& geometry = gauge.geometry();
  const auto origin = geometry.origin(gauge.group().rank());
  std::vector<Number> field;
  for (std::int64_t site = 0; site < geometry.sites(); ++site) {
    std::int64_t rest = site;
    double phase = 0;
    for (std::size_t d = 0; d < origin.size(); ++d) {
      phase += static_cast<double>(d + 1) * static_cast<double>(origin[d] + rest % geometry.block()[d]);
      rest /= geometry.block()[d];
    }
    for (int c = 0; c < 3; ++c) field.push_back(std::polar(1.0, 0.3 * phase + c));
  }
  return field;
}

double square(const std::vector<Number>& field) {
  double sum = 0;
  for (const Number& each : field) sum += std::norm(each);
  return sum;
}

TEST(LatticeStaggered, TheSameOnEveryGrid) {
  const auto work = [](const Group& group, const std::vector<int>& grid) {
    Gauge gauge(group, {4, 4, 4, 8}, grid);
    gauge.set_random(2);
    Staggered staggered(gauge);
    const auto solved = staggered.solve(wave(gauge), 0.5, {.tolerance = 1e-9});
    EXPECT_TRUE(solved.report.converged);
    double total = 0;
    for (const auto& each : group.allgather(std::as_bytes(std::span(solved.solutions)))) {
      const std::span numbers(reinterpret_cast<const Number*>(each.data()), each.size() / sizeof(Number));
      total += square({numbers.begin(), numbers.end()});
    }
    return total;
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
  EXPECT_THROW((void)staggered.hop(std::vector<Number>(3)), BadInput);
  EXPECT_THROW((void)staggered.solve(std::vector<Number>(48), 0), BadInput);
}

}  // namespace
}  // namespace onehop::lattice
