// Vector arithmetic of the solvers, on arrays [vector][rhs][number][re, im][lane]: `num_rhs` systems side by side, each
// with its own coefficients. All threads of a pool work on it; sums run over all ranks.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "lattice/geometry/field.h"
#include "lattice/support/sums.h"
#include "src/base/thread_pool.h"

namespace onehop::lattice::detail {

using Coefficient = std::complex<double>;

inline constexpr int shift_steps = 4;  // the most residuals that one call of VectorSpace::shift() takes

template <class Real>
class VectorSpace {
 public:
  // `shape.vectors` excludes ghosts. `pool` and `sums` must outlive this object; `sums` must take 2 * num_rhs numbers
  // or more.
  VectorSpace(const base::ThreadPool& pool, Sums& sums, const FieldShape& shape);

  [[nodiscard]] const FieldShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(shape_.size()); }
  [[nodiscard]] int num_rhs() const noexcept { return shape_.num_rhs; }
  [[nodiscard]] const base::ThreadPool& pool() const noexcept { return *pool_; }
  [[nodiscard]] Sums& sums() const noexcept { return *sums_; }
  [[nodiscard]] Buffer<Real> make() const { return Buffer<Real>(size()); }

  // Results and coefficients have one entry per right-hand side. dot(), norm(), step(), step_residual() and total() are
  // collective.
  void dot(const Real* a, const Real* b, std::span<Coefficient> result);  // sum of conj(a) b
  void norm(const Real* a, std::span<double> result);                     // sum of |a|^2
  // x += alpha p, r -= alpha q, norm = |r|^2
  void step(std::span<const double> alpha, const Real* p, const Real* q, Real* x, Real* r, std::span<double> norm);
  // to = r - alpha q, norm = |to|^2
  void step_residual(std::span<const double> alpha, const Real* q, Real* r, Real* to, std::span<double> norm);
  // p = r + beta p
  void direct(const Real* r, std::span<const double> beta, Real* p);
  // y = sum over t of coefficients[t * num_rhs + rhs] * terms[t], for 1 to 4 terms; y may be one of them.
  void combine(std::span<const Coefficient> coefficients, std::span<const Real* const> terms, Real* y);
  // to = a + factors * b, with one factor per right-hand side, and to = a - b.
  void add(const Real* a, std::span<const double> factors, const Real* b, Real* to);
  void subtract(const Real* a, const Real* b, Real* to) {
    add(a, std::vector<double>(static_cast<std::size_t>(num_rhs()), -1.0), b, to);
  }
  // For every shift s and each of 1 to shift_steps residuals r[t] in turn: x[s] += alpha p[s], then p[s] = zeta r[t] +
  // beta p[s], with the coefficients [t * shifts + s]. One right-hand side.
  void shift(std::span<const double> alpha, std::span<const double> beta, std::span<const double> zeta,
             std::span<const Real* const> r, std::span<Real* const> x, std::span<Real* const> p);
  void copy(const Real* from, Real* to);
  void zero(Real* to);

  // Partial sums of each thread, one number per right-hand side, for operators that sum while they apply; total() adds
  // them up.
  struct Partial {
    std::vector<double> plain;
    std::vector<Superaccumulator> wide;
  };
  [[nodiscard]] std::vector<Partial>& partials();                                       // set to 0
  [[nodiscard]] std::vector<Partial>& partials_so_far() noexcept { return partials_; }  // as they are
  void total(std::span<double> results);

  // Floating-point operations, and bytes read and written, of all calls so far.
  double flops = 0;
  double bytes = 0;

 private:
  void count(double flops_a_number, int arrays);

  FieldShape shape_;
  const base::ThreadPool* pool_;
  Sums* sums_;
  std::vector<Partial> partials_;
  std::vector<double> scratch_;
};

// Converts `count` numbers to another precision, in parallel.
template <class From, class To>
void convert(const base::ThreadPool& pool, const From* from, To* to, std::size_t count);

extern template class VectorSpace<double>;
extern template class VectorSpace<float>;

}  // namespace onehop::lattice::detail
