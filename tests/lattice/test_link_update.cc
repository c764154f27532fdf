// Updates of single links against exact integrals: over SU(2), where the mean is a ratio of Bessel functions, and over
// SU(3), where the integral of exp(Re tr(U J)) is a sum of determinants of Bessel functions.
#include "lattice/gauge/link_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>
#include <utility>
#include <vector>

namespace onehop::lattice::detail {
namespace {

// The modified Bessel function I_n(x) for x >= 0 by its series, whose terms are positive. libc++ has no
// std::cyl_bessel_i.
double bessel_i(int n, double x) {
  double term = 1;
  for (int k = 1; k <= n; ++k) term *= x / 2 / k;
  double sum = term;
  for (int k = 1; term > 1e-17 * sum; ++k) {
    term *= x / 2 * (x / 2) / (k * static_cast<double>(n + k));
    sum += term;
  }
  return sum;
}

using Number = std::complex<double>;
using Link = su3::Matrix<double>;
using Random = RandomLanes<double>;

constexpr int max_draws = 40000;

TEST(LatticeLinkUpdate, FunctionsAreThoseOfTheMathematicalLibrary) {
  for (int i = 0; i <= 4000; ++i) {
    const double x = i / 4000.0;
    const auto [cosine, sine] = cosine_and_sine_of_turns(x);
    EXPECT_NEAR(cosine, std::cos(2 * M_PI * x), 1e-15) << x;
    EXPECT_NEAR(sine, std::sin(2 * M_PI * x), 1e-15) << x;
    if (i == 0) continue;
    for (const double y : {x, x * 1e-12, 1 - x * 1e-9, 7 * x})
      EXPECT_NEAR(logarithm(y), std::log(y), 1e-15 * std::max(1.0, std::abs(std::log(y)))) << y;
  }
  EXPECT_LT(logarithm(0.0), -700);
}

// Half the trace x of an SU(2) matrix has the density sqrt(1 - x^2) exp(a x). <x> = I_2(a) / I_1(a) and <x^2> = 1 - 3
// <x> / a.
TEST(LatticeLinkUpdate, CosinesHaveTheMeansOfSu2) {
  for (const double a : {0.0, 0.3, 1.0, 1.49, 1.51, 4.0, 17.0, 120.0}) {
    double sum = 0;
    double squares = 0;
    double fourth = 0;
    for (int i = 0; i < max_draws; ++i) {
      const double x = draw_cosine(a, Random(5, static_cast<std::uint64_t>(i), 0, 2), 1, true);
      ASSERT_LE(std::abs(x), 1);
      sum += x;
      squares += x * x;
      fourth += x * x * x * x;
    }
    const double mean = a == 0 ? 0 : bessel_i(2, a) / bessel_i(1, a);
    const double square = a == 0 ? 0.25 : 1 - 3 * mean / a;
    const double width = std::sqrt((square - mean * mean) / max_draws);
    EXPECT_NEAR(sum / max_draws, mean, 4 * width) << a;
    const double found = squares / max_draws;
    const double of_squares = std::sqrt((fourth / max_draws - found * found) / max_draws);
    EXPECT_NEAR(found, square, 4 * of_squares) << a;
  }
}

// The integral of exp(Re tr(U J)) over SU(3), up to a constant, for J = diag(m_0, m_1, m_2) exp(i angle / 3) with m_i
// above 0: over U(3) with the determinant to the power n it is exp(i n angle) det[m_i^j I_(n + j)(m_i)] / det[m_i^(2
// j)], and these are added up.
double integral(const std::array<double, 3>& m, double angle) {
  const auto determinant = [](const std::array<std::array<double, 3>, 3>& e) {
    return e[0][0] * (e[1][1] * e[2][2] - e[1][2] * e[2][1]) - e[0][1] * (e[1][0] * e[2][2] - e[1][2] * e[2][0]) +
           e[0][2] * (e[1][0] * e[2][1] - e[1][1] * e[2][0]);
  };
  std::array<std::array<double, 3>, 3> below{};
  double sum = 0;
  for (int n = -25; n <= 25; ++n) {
    std::array<std::array<double, 3>, 3> above{};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        above[i][j] = std::pow(m[i], j) * bessel_i(std::abs(n + static_cast<int>(j)), m[i]);
        below[i][j] = std::pow(m[i], 2 * j);
      }
    }
    sum += std::cos(n * angle) * determinant(above);
  }
  return sum / determinant(below);
}

Link random_su3(std::mt19937& generator) {
  std::normal_distribution<double> normal;
  Link m;
  for (auto& row : m.e) {
    for (auto& z : row) z = {normal(generator), normal(generator)};
  }
  su3::reunitarise(m);
  return m;
}

TEST(LatticeLinkUpdate, HeatBathHasTheMeansOfSu3) {
  std::mt19937 generator(7);
  struct Case {
    double beta;
    std::array<double, 3> sizes;
    double angle;
  };
  const std::vector<Case> cases{{0.7, {1.0, 0.4, 0.2}, 0.4},
                                {5.7, {1.1, 1.9, 0.6}, -1.1},
                                {6.0, {5.1, 4.2, 3.0}, 0.3},
                                {3.0, {2.2, 0.3, 1.4}, 3.0}};
  for (const auto& [beta, sizes, angle] : cases) {
    // Random staples with these singular values and this phase of the determinant: a diagonal matrix between two of
    // SU(3).
    Link staples{};
    for (int i = 0; i < 3; ++i) staples.e[i][i] = {sizes[i] * std::cos(angle / 3), sizes[i] * std::sin(angle / 3)};
    staples = su3::times_adjoint(random_su3(generator) * staples, random_su3(generator));
    Link link = random_su3(generator);
    std::vector<double> blocks;
    double squares = 0;
    constexpr int sweeps = 1000;
    for (int i = 0; i < max_draws; ++i) {
      if (i % sweeps == 0) blocks.push_back(0);
      heat_bath_link(link, staples, beta, Random(3, 1, static_cast<std::uint32_t>(i), 2), true);
      su3::reunitarise(link);
      const double x = su3::real_trace_times_adjoint(link, staples) * beta / 3;
      blocks.back() += x / sweeps;
      squares += x * x / max_draws;
    }
    double mean = 0;
    double spread = 0;
    for (const double block : blocks) mean += block / static_cast<double>(blocks.size());
    for (const double block : blocks) spread += (block - mean) * (block - mean);
    const double width = std::sqrt(spread) / static_cast<double>(blocks.size());
    const auto at = [&](double scale) {
      std::array<double, 3> m = sizes;
      for (double& one : m) one *= scale * beta / 3;
      return std::log(integral(m, angle));
    };
    constexpr double step = 0.01;
    const double exact = (8 * (at(1 + step) - at(1 - step)) - (at(1 + 2 * step) - at(1 - 2 * step))) / (12 * step);
    const double variance = (at(1 + step) - 2 * at(1) + at(1 - step)) / (step * step);
    EXPECT_NEAR(mean, exact, 4.5 * width) << beta;
    EXPECT_LT(width, 0.02 * std::sqrt(variance));
    EXPECT_NEAR(squares - mean * mean, variance, 0.06 * variance) << beta;
  }
}

TEST(LatticeLinkUpdate, OverRelaxationKeepsTheActionAndMoves) {
  std::mt19937 generator(9);
  for (int i = 0; i < 20; ++i) {
    const Link staples = random_su3(generator) + random_su3(generator);
    const Link before = random_su3(generator);
    Link link = before;
    over_relax_link(link, staples);
    EXPECT_NEAR(su3::real_trace_times_adjoint(link, staples), su3::real_trace_times_adjoint(before, staples), 1e-13);
    EXPECT_LT(su3::deviation(link), 1e-14);
    EXPECT_LT(su3::real_trace_times_adjoint(link, before), 2.999);
  }
  Link link = random_su3(generator);
  const Link before = link;
  over_relax_link(link, Link{});  // staples of 0 leave the link unchanged
  EXPECT_EQ(su3::real_trace_times_adjoint(link, before), su3::real_trace_times_adjoint(before, before));
}

// In a vector of eight lanes, two of them unused, each link gets the same bits as in a vector of one.
TEST(LatticeLinkUpdate, EveryLaneIsAsAlone) {
  using Real = Sites<8>::Real;
  std::mt19937 generator(11);
  su3::Matrix<Real> links{};
  su3::Matrix<Real> staples{};
  Words<Real> places{};
  std::array<Link, 6> expected{};
  for (int lane = 0; lane < 6; ++lane) {
    expected[lane] = random_su3(generator);
    const Link around = std::pow(4.0, lane - 2) * random_su3(generator);
    places[lane] = 1000003ull * static_cast<unsigned>(lane);
    for (int i = 0; i < 9; ++i) {
      links.e[i / 3][i % 3].re[lane] = expected[lane].e[i / 3][i % 3].re;
      links.e[i / 3][i % 3].im[lane] = expected[lane].e[i / 3][i % 3].im;
      staples.e[i / 3][i % 3].re[lane] = around.e[i / 3][i % 3].re;
      staples.e[i / 3][i % 3].im[lane] = around.e[i / 3][i % 3].im;
    }
    heat_bath_link(expected[lane], around, 5.7, Random(77, places[lane], 4, 2), true);
  }
  heat_bath_link<Real>(links, staples, 5.7, RandomLanes<Real>(77, places, 4, 2), first_lanes<Real>(6));
  for (int lane = 0; lane < 6; ++lane) {
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(links.e[i / 3][i % 3].re[lane], expected[lane].e[i / 3][i % 3].re);
      EXPECT_EQ(links.e[i / 3][i % 3].im[lane], expected[lane].e[i / 3][i % 3].im);
    }
  }
}

}  // namespace
}  // namespace onehop::lattice::detail
