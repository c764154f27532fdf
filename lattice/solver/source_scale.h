// Right-hand sides whose numbers are far from 1, as they are solved. Neither the square of their length nor what single precision keeps of
// their residuals may leave the range of numbers, so they are multiplied by powers of two, which rounds nothing, and solutions back.
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "onehop/group.h"

namespace onehop::lattice::detail {

class SourceScale {
 public:
  // Collective. `sources` are `num_rhs` fields of equal length, of the sites of this rank, and must outlive this.
  SourceScale(const Group& group, std::span<const std::complex<double>> sources, int num_rhs);

  [[nodiscard]] std::span<const std::complex<double>> sources() const { return sources_; }
  // The solutions of these sources, one after the other; with one source of as many systems as there are.
  void restore(std::span<std::complex<double>> solutions) const;

 private:
  std::span<const std::complex<double>> sources_;
  std::vector<int> exponents_;  // source times 2^-exponent is what is solved
  std::vector<std::complex<double>> scaled_;
};

}  // namespace onehop::lattice::detail
