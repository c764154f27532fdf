// Solvers on an operator with a known inverse, and their building blocks: sums, fields, threads.
#include "onehop/lattice/solver.h"

#include <gtest/gtest.h>

#include <random>

#include "lattice/solver/bicgstab.h"
#include "lattice/solver/refinement.h"
#include "onehop/error.h"
#include "tests/support/ranks.h"

namespace onehop::lattice::detail {
namespace {

TEST(LatticeSolver, SuperaccumulatorsAreExact) {
  std::mt19937_64 random(1);
  std::vector<double> numbers;
  for (int i = 0; i < 500; ++i) {
    const double x = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 1900) - 1070);
    numbers.push_back(x);
    numbers.push_back(-x);
  }
  numbers.push_back(0x1.23456789abcdep-1040);
  std::ranges::shuffle(numbers, random);
  Superaccumulator sum;
  Superaccumulator other;
  for (std::size_t i = 0; i < numbers.size(); ++i) (i % 3 == 0 ? sum : other).add(numbers[i]);
  sum.add(other);
  EXPECT_EQ(sum.value(), 0x1.23456789abcdep-1040);
  sum.add(-3.25);
  EXPECT_EQ(sum.value(), -3.25);
  sum.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(sum.value()));
}

// A diagonal operator on a rank's part of a vector.
template <class Real>
class Diagonal final : public LinearOperator<Real> {
 public:
  Diagonal(const base::ThreadPool& pool, Sums& sums, std::vector<std::complex<double>> factors, int lanes, int num_rhs)
      : space_(pool, sums, {static_cast<std::int64_t>(factors.size()) / lanes, 0, num_rhs, 1, lanes}),
        factors_(std::move(factors)),
        input_(space_.size()) {}
  VectorSpace<Real>& space() override { return space_; }
  Real* input() override { return input_.data(); }
  void apply(const Real* in, Real* out) override {
    const auto& shape = space_.shape();
    for (std::int64_t vector = 0; vector < shape.vectors; ++vector) {
      for (int rhs = 0; rhs < shape.num_rhs; ++rhs) {
        for (int lane = 0; lane < shape.lanes; ++lane) {
          const auto factor = factors_[static_cast<std::size_t>(vector * shape.lanes + lane)];
          const std::int64_t re = shape.at(vector, rhs, 0, lane);
          const std::int64_t im = re + shape.lanes;
          const std::complex<double> product = factor * std::complex<double>(in[re], in[im]);
          out[re] = static_cast<Real>(product.real());
          out[im] = static_cast<Real>(product.imag());
        }
      }
    }
  }

 private:
  VectorSpace<Real> space_;
  std::vector<std::complex<double>> factors_;
  Buffer<Real> input_;
};

struct Bench {
  Bench(const Group& group, int threads, bool wide) : pool(threads), sums(group, 8, wide) {}
  base::ThreadPool pool;
  Sums sums;
};

std::vector<std::complex<double>> some_factors(std::size_t count, int rank, bool real) {
  std::vector<std::complex<double>> factors;
  for (std::size_t i = 0; i < count; ++i) {
    const double size = 1 + 0.37 * static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 3) % 61);
    factors.push_back(real ? size : std::polar(size, 0.02 * static_cast<double>(i % 40)));
  }
  return factors;
}

template <class Real>
std::vector<double> norms_of(LinearOperator<Real>& a, const Real* vector) {
  std::vector<double> norms(static_cast<std::size_t>(a.space().num_rhs()));
  a.space().norm(vector, norms);
  return norms;
}

// The largest |b - A x|^2 / |b|^2 of all right-hand sides.
template <class Real>
double residual(LinearOperator<Real>& a, const Real* b, const Real* x) {
  const Buffer<Real> r = a.space().make();
  const auto norm = norms_of(a, b);
  auto left = norm;
  a.residual(b, x, r.data(), left);
  double worst = 0;
  for (std::size_t i = 0; i < norm.size(); ++i) worst = std::max(worst, left[i] / norm[i]);
  return worst;
}

template <class Real>
Buffer<Real> some_vector(const VectorSpace<Real>& space, int rank) {
  Buffer<Real> b = space.make();
  for (std::size_t i = 0; i < b.size(); ++i)
    b.data()[i] = static_cast<Real>(std::sin(0.7 * static_cast<double>(i) + rank));
  return b;
}

Stopping until(const std::vector<double>& norms, double tolerance) {
  Stopping stopping;
  for (const double norm : norms) stopping.target.push_back(norm * tolerance * tolerance);
  return stopping;
}

TEST(LatticeSolver, SolversFindWhatTheyShould) {
  for (const bool wide : {false, true}) {
    testing::on_threads(2, [&](const Group& group) {
      Bench bench(group, 1, wide);
      Diagonal<double> real(bench.pool, bench.sums, some_factors(64, group.rank(), true), 4, 2);
      Diagonal<double> turned(bench.pool, bench.sums, some_factors(64, group.rank(), false), 8, 2);
      Diagonal<float> low(bench.pool, bench.sums, some_factors(64, group.rank(), true), 4, 2);
      const auto solve = [&](auto& a, auto&& method) {
        const Buffer<double> b = some_vector(a.space(), group.rank());
        const Buffer<double> x = a.space().make(), r = a.space().make();
        a.space().copy(b.data(), r.data());
        method(a, b.data(), x.data(), r.data(), until(norms_of(a, static_cast<const double*>(b.data())), 1e-11));
        EXPECT_LT(residual(a, static_cast<const double*>(b.data()), static_cast<const double*>(x.data())), 2e-22);
      };
      solve(real, [](auto& a, const double*, double* x, double* r, const Stopping& stopping) {
        EXPECT_LE(conjugate_gradients(a, x, r, stopping), 64);
      });
      solve(real, [&](auto& a, const double* b, double* x, double* r, const Stopping& stopping) {
        const auto done = mixed_conjugate_gradients(a, low, b, x, r, stopping, 0.1);
        EXPECT_LE(done.iterations, 120);
        EXPECT_GE(done.reliable_updates, 2);
      });
      solve(turned, [](auto& a, const double*, double* x, double* r, const Stopping& stopping) {
        EXPECT_LE(bicgstab(a, x, r, stopping), 500);
      });
      solve(real, [&](auto& a, const double* b, double* x, double* r, const Stopping& stopping) {
        corrected(a, low.space(), b, x, r, stopping, 1e-3,
                  [&](float* residual, float* part, const Stopping& inner, std::int64_t done) {
                    return bicgstab(low, part, residual, inner, done);
                  });
      });
    });
  }
}

TEST(LatticeSolver, ShiftsAtOnce) {
  Bench bench(Group::alone(), 2, false);
  Diagonal<double> a(bench.pool, bench.sums, some_factors(64, 0, true), 8, 1);
  const std::vector<double> shifts{0, 0.3, 2, 30};
  const Buffer<double> b = some_vector(a.space(), 0);
  const auto norm = norms_of(a, static_cast<const double*>(b.data()));
  const Stopping stopping = until(std::vector<double>(4, norm[0]), 1e-11);
  ShiftVectors<double> vectors(a.space(), 4);
  ShiftState state;
  a.space().copy(b.data(), vectors.r.data());
  // The last part of the iterations runs in single precision, which costs neither accuracy nor many iterations.
  multi_shift(a, std::span(shifts), vectors, state, stopping, 1e-8 * norm[0]);
  EXPECT_GT(state.running, 0);
  Diagonal<float> low(bench.pool, bench.sums, some_factors(64, 0, true), 8, 1);
  ShiftVectors<float> rest(low.space(), 4);
  rest.take(bench.pool, vectors);
  multi_shift(low, std::span(shifts), rest, state, stopping);
  EXPECT_EQ(state.running, 0);
  EXPECT_LE(state.iterations, 66);
  for (std::size_t s = 0; s < shifts.size(); ++s) {
    auto factors = some_factors(64, 0, true);
    for (auto& each : factors) each += shifts[s];
    Diagonal<double> shifted(bench.pool, bench.sums, factors, 8, 1);
    Buffer<double> x = a.space().make();
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = vectors.x[s].data()[i] + rest.x[s].data()[i];
    EXPECT_LT(residual(shifted, static_cast<const double*>(b.data()), static_cast<const double*>(x.data())), 4e-22);
  }
}

TEST(LatticeSolver, EndsWithItsBestWhereThereIsNoSolution) {
  Bench bench(Group::alone(), 1, false);
  std::vector<std::complex<double>> singular(64, 0.0);
  Diagonal<double> a(bench.pool, bench.sums, singular, 8, 1);
  const Buffer<double> r = some_vector(a.space(), 0);
  const Buffer<double> x = a.space().make();
  EXPECT_EQ(conjugate_gradients(a, x.data(), r.data(), until({1}, 1e-9)), 0);
  EXPECT_LE(bicgstab(a, x.data(), r.data(), until({1}, 1e-9)), 1);
}

// An inconsistent operator: every application multiplies by other numbers, so that iterated residuals are wrong.
class Restless final : public LinearOperator<double> {
 public:
  Restless(const base::ThreadPool& pool, Sums& sums)
      : of_(pool, sums, std::vector<std::complex<double>>(64, 1.0), 4, 1) {}
  VectorSpace<double>& space() override { return of_.space(); }
  double* input() override { return of_.input(); }
  void apply(const double* in, double* out) override {
    for (std::size_t i = 0; i < of_.space().size(); ++i) out[i] = normal_(random_) * in[i];
  }

 private:
  Diagonal<double> of_;
  std::mt19937 random_{3};
  std::normal_distribution<double> normal_;
};

TEST(LatticeSolver, GivesUpWhereTheResidualOnlyGrows) {
  Bench bench(Group::alone(), 1, false);
  Restless a(bench.pool, bench.sums);
  const Buffer<double> x = a.space().make();
  const Buffer<double> r = a.space().make();
  for (std::size_t i = 0; i < a.space().size(); ++i) r.data()[i] = std::cos(static_cast<double>(i));
  Stopping stopping = until({1}, 1e-10);
  stopping.iterations = 100000;
  EXPECT_LT(bicgstab(a, x.data(), r.data(), stopping), 1000);
  // x is the solution with the smallest residual, so its norm stays moderate.
  EXPECT_LT(norms_of(a, static_cast<const double*>(x.data()))[0], 1e4);
}

TEST(LatticeSolver, NamesOfPrecisions) {
  EXPECT_EQ(precision_from_string("half"), Precision::half);
  EXPECT_EQ(to_string(Precision::double_), "double");
  EXPECT_THROW((void)precision_from_string("quarter"), BadInput);
}

}  // namespace
}  // namespace onehop::lattice::detail
