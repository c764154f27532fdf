// SU(3) linear algebra on arrays, with all instruction sets of this processor, against plain complex arithmetic.
#include "onehop/lattice/su3_array.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "onehop/error.h"

namespace onehop::lattice::su3 {
namespace {

using Number = std::complex<double>;
using Plain = std::array<Number, 9>;

Plain product(const Plain& a, const Plain& b) {
  Plain c{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) c[3 * i + j] += a[3 * i + k] * b[3 * k + j];
    }
  }
  return c;
}

Plain formed(const Plain& a, Form form) {
  if (form == Form::plain) return a;
  Plain c;
  for (std::size_t i = 0; i < 9; ++i) c[i] = std::conj(a[i % 3 * 3 + i / 3]);
  return c;
}

template <class T>
struct Su3Array : ::testing::Test {
  static constexpr std::size_t sites = 5 * array_lanes<T>;
  static constexpr double tolerance = sizeof(T) == 4 ? 2e-5 : 4e-14;
  std::mt19937 random{7};

  void TearDown() override { use_array_target(""); }

  std::vector<Number> numbers(std::size_t count, double scale = 1) {
    std::normal_distribution<double> normal(0, scale);
    std::vector<Number> found(sites * count);
    // Rounded to T, so that both sides start from the same numbers.
    for (Number& z : found) z = {static_cast<T>(normal(random)), static_cast<T>(normal(random))};
    return found;
  }
  static std::vector<T> grouped(const std::vector<Number>& from) {
    std::vector<T> groups(from.size() * 2);
    to_aosoa<T>(from, from.size() / sites, groups);
    return groups;
  }
  static std::vector<Number> ungrouped(const std::vector<T>& groups) {
    std::vector<Number> found(groups.size() / 2);
    from_aosoa<T>(groups, found.size() / sites, found);
    return found;
  }
  static Plain matrix(const std::vector<Number>& of, std::size_t site) {
    Plain m;
    std::copy_n(of.begin() + static_cast<std::ptrdiff_t>(9 * site), 9, m.begin());
    return m;
  }
  static void expect_matrix(const std::vector<Number>& found, std::size_t site, const Plain& expected, double error) {
    for (std::size_t i = 0; i < 9; ++i)
      ASSERT_LE(std::abs(found[9 * site + i] - expected[i]), error) << site << " " << i;
  }
};

using Precisions = ::testing::Types<double, float>;
TYPED_TEST_SUITE(Su3Array, Precisions);

TYPED_TEST(Su3Array, VectorsAreAddedOnEveryTarget) {
  using T = TypeParam;
  const auto m = this->numbers(9);
  const auto v = this->numbers(3);
  const auto r = this->numbers(3);
  const std::vector<std::int32_t> from{3, 0, 4, 4, 1};
  for (const std::string& target : array_targets()) {
    use_array_target(target);
    for (const Form form : {Form::plain, Form::adjoint}) {
      for (const bool elsewhere : {false, true}) {
        std::vector<T> result = this->grouped(r);
        const auto gm = this->grouped(m);
        const auto gv = this->grouped(v);
        if (elsewhere) {
          add_products<T>(gm, gv, from, result, form);
        } else {
          add_products<T>(gm, gv, std::span<T>(result), form);
        }
        const auto found = this->ungrouped(result);
        for (std::size_t site = 0; site < this->sites; ++site) {
          const std::size_t group = site / array_lanes<T>;
          const std::size_t of_v =
              elsewhere ? static_cast<std::size_t>(from[group]) * array_lanes<T> + site % array_lanes<T> : site;
          const Plain a = formed(this->matrix(m, site), form);
          for (std::size_t i = 0; i < 3; ++i) {
            Number expected = r[3 * site + i];
            for (std::size_t j = 0; j < 3; ++j) expected += a[3 * i + j] * v[3 * of_v + j];
            ASSERT_LE(std::abs(found[3 * site + i] - expected), this->tolerance) << target << " " << site;
          }
        }
      }
    }
  }
}

TYPED_TEST(Su3Array, MatricesOnEveryTarget) {
  using T = TypeParam;
  const auto a = this->numbers(9);
  const auto b = this->numbers(9);
  for (const std::string& target : array_targets()) {
    use_array_target(target);
    for (const Form of_a : {Form::plain, Form::adjoint}) {
      for (const Form of_b : {Form::plain, Form::adjoint}) {
        std::vector<T> result(a.size() * 2);
        products<T>(this->grouped(a), this->grouped(b), result, of_a, of_b);
        const auto found = this->ungrouped(result);
        for (std::size_t site = 0; site < this->sites; ++site) {
          this->expect_matrix(found, site,
                              product(formed(this->matrix(a, site), of_a), formed(this->matrix(b, site), of_b)),
                              this->tolerance);
        }
      }
    }
  }
}

TYPED_TEST(Su3Array, ExponentialsOnEveryTarget) {
  using T = TypeParam;
  for (const double scale : {1e-3, 0.1, 0.7}) {
    const auto a = this->numbers(9, scale);
    for (const std::string& target : array_targets()) {
      use_array_target(target);
      std::vector<T> result = this->grouped(a);
      exponentials<T>(result, std::span<T>(result));
      const auto found = this->ungrouped(result);
      for (std::size_t site = 0; site < this->sites; ++site) {
        Plain sum{};  // the Taylor series, until its terms vanish
        Plain term{1, 0, 0, 0, 1, 0, 0, 0, 1};
        for (int n = 1; n < 60; ++n) {
          for (std::size_t i = 0; i < 9; ++i) sum[i] += term[i];
          term = product(term, this->matrix(a, site));
          for (Number& z : term) z /= n;
        }
        this->expect_matrix(found, site, sum, 100 * this->tolerance);
      }
    }
  }
}

TYPED_TEST(Su3Array, ReunitarisedAndTwoRowsOnEveryTarget) {
  using T = TypeParam;
  const auto a = this->numbers(9);
  for (const std::string& target : array_targets()) {
    use_array_target(target);
    std::vector<T> u = this->grouped(a);
    reunitarise<T>(std::span<T>(u));
    const auto found = this->ungrouped(u);
    std::vector<T> two(u.size() / 3 * 2);
    std::vector<T> again(u.size());
    compress<T>(u, std::span<T>(two));
    expand<T>(two, std::span<T>(again));
    const auto back = this->ungrouped(again);
    for (std::size_t site = 0; site < this->sites; ++site) {
      const Plain m = this->matrix(found, site);
      const Plain one = product(m, formed(m, Form::adjoint));
      for (std::size_t i = 0; i < 9; ++i)
        ASSERT_LE(std::abs(one[i] - (i % 4 == 0 ? 1.0 : 0.0)), this->tolerance) << target;
      const Number determinant =
          m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
      ASSERT_LE(std::abs(determinant - 1.0), this->tolerance);
      this->expect_matrix(back, site, m, this->tolerance);
      // Only the length of the first row has changed.
      const Number ratio = a[9 * site] / m[0];
      ASSERT_NEAR(ratio.imag(), 0, 1e3 * this->tolerance);
      ASSERT_GT(ratio.real(), 0);
    }
  }
}

TEST(LatticeSu3Array, SaysWhatIsWrong) {
  const std::vector<double> m(144);
  const std::vector<double> v(48);
  std::vector<double> r(48);
  EXPECT_THROW(add_products<double>(std::span(m).first(143), v, std::span(r)), BadInput);
  EXPECT_THROW(add_products<double>(m, {}, std::span(r)), BadInput);
  const std::vector<std::int32_t> beyond{1};
  EXPECT_THROW(add_products<double>(m, v, beyond, r), BadInput);
  EXPECT_THROW(use_array_target("vax"), BadInput);
}

}  // namespace
}  // namespace onehop::lattice::su3
