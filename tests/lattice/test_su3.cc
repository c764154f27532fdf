// SU(3) linear algebra against plain complex arithmetic, and its identities.
#include "onehop/lattice/su3.h"

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <random>

namespace onehop::lattice::su3 {
namespace {

using Number = std::complex<double>;
using Plain = std::array<std::array<Number, 3>, 3>;

Matrix<double> random_matrix(std::mt19937& random, double scale = 1) {
  std::normal_distribution<double> normal(0, scale);
  Matrix<double> m;
  for (auto& row : m.e) {
    for (auto& z : row) z = {normal(random), normal(random)};
  }
  return m;
}

Plain plain(const Matrix<double>& m) {
  Plain p;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) p[i][j] = {m.e[i][j].re, m.e[i][j].im};
  }
  return p;
}

Plain product(const Plain& a, const Plain& b) {
  Plain p{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) p[i][j] += a[i][k] * b[k][j];
    }
  }
  return p;
}

Plain dagger(const Plain& a) {
  Plain p;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) p[i][j] = std::conj(a[j][i]);
  }
  return p;
}

Number determinant(const Plain& a) {
  return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
         a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

void expect_near(const Plain& a, const Plain& b, double tolerance) {
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) EXPECT_LE(std::abs(a[i][j] - b[i][j]), tolerance) << i << j;
  }
}

TEST(LatticeSu3, ProductsAreThoseOfComplexNumbers) {
  std::mt19937 random(1);
  const auto a = random_matrix(random);
  const auto b = random_matrix(random);
  expect_near(plain(a * b), product(plain(a), plain(b)), 1e-14);
  expect_near(plain(times_adjoint(a, b)), product(plain(a), dagger(plain(b))), 1e-14);
  expect_near(plain(adjoint_times(a, b)), product(dagger(plain(a)), plain(b)), 1e-14);
  const Plain c = product(plain(a), dagger(plain(b)));
  EXPECT_NEAR(real_trace_times_adjoint(a, b), (c[0][0] + c[1][1] + c[2][2]).real(), 1e-13);
  EXPECT_NEAR(real_trace(a), (plain(a)[0][0] + plain(a)[1][1] + plain(a)[2][2]).real(), 1e-14);
  Vector<double> v;
  for (int i = 0; i < 3; ++i) v.c[i] = b.e[i][0];
  Vector<double> forward{};
  Vector<double> backward{};
  add_product(forward, a, v);
  add_adjoint_product(backward, a, v);
  for (std::size_t i = 0; i < 3; ++i) {
    const Number ahead = product(plain(a), plain(b))[i][0];
    const Number behind = product(dagger(plain(a)), plain(b))[i][0];
    EXPECT_LE(std::abs(Number(forward.c[i].re, forward.c[i].im) - ahead), 1e-14);
    EXPECT_LE(std::abs(Number(backward.c[i].re, backward.c[i].im) - behind), 1e-14);
  }
}

TEST(LatticeSu3, ReunitarisedIsSu3AndTwoRowsSuffice) {
  std::mt19937 random(2);
  for (int i = 0; i < 20; ++i) {
    auto m = random_matrix(random);
    reunitarise(m);
    EXPECT_LE(deviation(m), 1e-14);
    EXPECT_LE(std::abs(determinant(plain(m)) - 1.0), 1e-14);
    Matrix<double> two = m;
    for (auto& z : two.e[2]) z = {};
    third_row(two);
    expect_near(plain(two), plain(m), 1e-14);
    m.e[1][2].re += 1e-3;
    EXPECT_GT(deviation(m), 1e-4);
  }
}

TEST(LatticeSu3, ExponentialOfTracelessAntihermitianIsSu3) {
  std::mt19937 random(3);
  for (const double scale : {1e-3, 0.3, 5.0}) {
    const auto a = random_matrix(random, scale);
    Matrix<double> generator = a + -1.0 * adjoint(a);
    const double trace = (generator.e[0][0].im + generator.e[1][1].im + generator.e[2][2].im) / 3;
    for (int i = 0; i < 3; ++i) generator.e[i][i].im -= trace;
    const auto u = exponential(generator);
    EXPECT_LE(deviation(u), 1e-12);
    expect_near(product(plain(u), plain(exponential(-1.0 * generator))), plain(Matrix<double>::one()), 1e-12);
  }
  Matrix<double> diagonal{};
  const std::array<Number, 3> entries{Number(0.5, 2), Number(-1, -3), Number(0.1, 40)};
  for (int i = 0; i < 3; ++i)
    diagonal.e[i][i] = {entries[static_cast<std::size_t>(i)].real(), entries[static_cast<std::size_t>(i)].imag()};
  const Plain u = plain(exponential(diagonal));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LE(std::abs(u[i][i] - std::exp(entries[i])), 1e-12);
}

}  // namespace
}  // namespace onehop::lattice::su3
