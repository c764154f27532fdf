// Arithmetic on the vectors of a solver: arrays of [unit][rhs][number][re, im][lane], `num_rhs` systems side by side, each with its
// own coefficients. Done by all threads of a team; sums over all ranks.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "lattice/geometry/field.h"
#include "lattice/support/sums.h"
#include "lattice/support/team.h"

namespace onehop::lattice::detail {

using Coefficient = std::complex<double>;

inline constexpr int shift_steps = 4;

template <class Real>
class VectorSpace {
 public:
  // `vectors` counts without ghosts. The team and the sums must outlive it; sums of 2 * num_rhs numbers or more.
  VectorSpace(Team& team, Sums& sums, const FieldShape& shape);

  [[nodiscard]] const FieldShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(shape_.size()); }
  [[nodiscard]] int num_rhs() const noexcept { return shape_.num_rhs; }
  [[nodiscard]] Team& team() const noexcept { return *team_; }
  [[nodiscard]] Sums& sums() const noexcept { return *sums_; }
  [[nodiscard]] Buffer<Real> make() const { return Buffer<Real>(size()); }

  // All results have one entry per right-hand side. Those that sum are collective.
  void dot(const Real* a, const Real* b, std::span<Coefficient> result);  // sum of conj(a) b
  void norm(const Real* a, std::span<double> result);                     // sum of |a|^2
  // x += alpha p, r -= alpha q, and |r|^2.
  void step(std::span<const double> alpha, const Real* p, const Real* q, Real* x, Real* r, std::span<double> norm);
  // to = r - alpha q, and its |to|^2.
  void step_residual(std::span<const double> alpha, const Real* q, Real* r, Real* to, std::span<double> norm);
  // p = r + beta p
  void direct(const Real* r, std::span<const double> beta, Real* p);
  // y = sum of coefficients[t * num_rhs + rhs] * terms[t], of 1 to 4 terms, of which y may be one.
  void combine(std::span<const Coefficient> coefficients, std::span<const Real* const> terms, Real* y);
  // For one right-hand side, for every shift s, with 1 to shift_steps residuals r[t] in turn: x[s] += alpha p[s], then p[s] = zeta r[t] + beta p[s],
  // with the coefficients [t * shifts + s].
  void shift(std::span<const double> alpha, std::span<const double> beta, std::span<const double> zeta,
             std::span<const Real* const> r, std::span<Real* const> x, std::span<Real* const> p);
  void copy(const Real* from, Real* to);
  void zero(Real* to);

  // For what operators sum on their way: for every thread its own sums, one per right-hand side; afterwards `total` of all of them.
  struct Partial {
    std::vector<double> plain;
    std::vector<Superaccumulator> wide;
  };
  [[nodiscard]] std::vector<Partial>& partials();                                       // set to 0
  [[nodiscard]] std::vector<Partial>& partials_so_far() noexcept { return partials_; }  // as they are
  void total(std::span<double> results);

  // What the calls above have done since the beginning.
  double flops = 0;
  double bytes = 0;

 private:
  void count(double flops_a_number, int arrays);

  FieldShape shape_;
  Team* team_;
  Sums* sums_;
  std::vector<Partial> partials_;
  std::vector<double> scratch_;
};

// Numbers of one precision as another's, in parallel.
template <class From, class To>
void convert(Team& team, const From* from, To* to, std::size_t count);

extern template class VectorSpace<double>;
extern template class VectorSpace<float>;

}  // namespace onehop::lattice::detail
