// Scales right-hand sides whose numbers are far from 1, so that neither |b|^2 nor a residual in single precision
// overflows or underflows. The factors are powers of two, so that scaling rounds nothing.
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "onehop/group.h"

namespace onehop::lattice::detail {

class SourceScale {
 public:
  // `sources` holds `num_rhs` fields of this rank's sites, one after the other, and must outlive this object.
  // Collective.
  SourceScale(const Group& group, std::span<const std::complex<double>> sources, int num_rhs);

  [[nodiscard]] std::span<const std::complex<double>> sources() const { return sources_; }
  // Undoes the scaling. `solutions` holds one field per source, or for a single source any number of fields.
  void restore(std::span<std::complex<double>> solutions) const;

 private:
  std::span<const std::complex<double>> sources_;
  std::vector<int> exponents_;  // sources() = the source times 2^-exponent
  std::vector<std::complex<double>> scaled_;
};

}  // namespace onehop::lattice::detail
