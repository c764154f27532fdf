// Sums of squared residuals with the same bits in every order of summation, and so for every grid of ranks.
//
// Every square is rounded to a multiple of a common unit before it is added. If the whole sum is below 2^52 units, all
// partial sums are exact in double precision, whatever their order. The unit must therefore follow from a bound on the
// sum that all ranks know beforehand. Jacobi's method supplies it: one iteration multiplies the residual by
// H / (4 + m^2), whose norm is at most shrink = 4 / (4 + m^2), and adds rounding errors that the size of the solution
// bounds. So the last sum, which every rank has, bounds the next.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace onehop::poisson::detail {

class SumScale {
 public:
  // For `sites` sites and |b| <= largest at each, starting from x = 0.
  SumScale(double sites, double largest, double mass)
      : diagonal_(4 + mass * mass),
        shrink_(4 / diagonal_),
        mass_(mass),
        root_sites_(std::sqrt(sites)),
        largest_(largest),
        norm_(root_sites_ * largest) {}

  // Records the sum at `iteration`.
  void know(std::int64_t iteration, double sum) {
    at_ = iteration;
    norm_ = std::sqrt(sum);
  }

  // The number to add to a square and subtract again, for a sum at `iteration`, at or after the last known one.
  [[nodiscard]] double rounder(std::int64_t iteration) const {
    const double steps = static_cast<double>(iteration - at_);
    // |x| grows by at most |b| / diagonal an iteration, and never beyond |b| / m^2.
    const double solution = largest_ * std::min(1 / (mass_ * mass_), (static_cast<double>(iteration) + 1) / diagonal_);
    const double error = 0x1p-48 * root_sites_ * (largest_ + 2 * diagonal_ * solution);  // of one iteration, at most
    const double norm = 2 * norm_ * std::pow(shrink_, steps) + (steps + 4) * error;
    int exponent = 0;
    (void)std::frexp(std::max(norm * norm, 0x1p-900), &exponent);  // the sum is below 2^exponent = 2^51 units
    return std::ldexp(1.5, exponent + 1);                          // 1.5 * 2^52 units
  }

 private:
  double diagonal_;
  double shrink_;
  double mass_;
  double root_sites_;
  double largest_;
  double norm_;
  std::int64_t at_ = 0;
};

}  // namespace onehop::poisson::detail
