// Staggered quarks on a gauge field that is split over ranks: the naive one-link hopping term
//
//   (D v)(x) = sum over mu of eta_mu(x) [ U_mu(x) v(x + mu) - adjoint(U_mu(x - mu)) v(x - mu) ],   eta_mu(x) = (-1)^(x_0 + ... + x_(mu - 1)),
//
// and M = 2 m + D. D is anti-Hermitian and connects sites of different colour only. Faces travel while the interior is computed.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "onehop/lattice/gauge.h"

namespace onehop::lattice {

struct StaggeredOptions {
  bool antiperiodic = true;  // in the last direction: links across the end of the lattice count negative
  int lanes = 8;             // of a vector, at most; fewer where so many do not fit
};

struct StaggeredSolve {
  std::vector<std::complex<double>> solution;  // this rank's block, as a field
  std::int64_t iterations = 0;
  double true_residual = 0;  // |b - M x| / |b|, made anew with the whole operator
  bool converged = false;    // whether that is at most the tolerance
  double seconds = 0;
  double communication_seconds = 0;  // spent waiting for faces and sums
};

class Staggered {
 public:
  // Copies the links, with phases. Collective. Throws BadInput for odd extents, blocks that are too thin, and lanes below 1.
  explicit Staggered(const Gauge& gauge, const StaggeredOptions& options = {});
  Staggered(Staggered&&) noexcept;
  Staggered& operator=(Staggered&&) noexcept;
  ~Staggered();

  [[nodiscard]] const Geometry& geometry() const noexcept;  // of the vectors inside

  // D v. A field is this rank's block in lexicographic order, three complex numbers a site. Collective. Throws BadInput for another
  // length.
  [[nodiscard]] std::vector<std::complex<double>> hop(std::span<const std::complex<double>> field);

  // Solves M x = b by conjugate gradients for 4 m^2 - D^2 on the even sites. A solve that ends without having converged gives what
  // it has and says so. Collective. Throws BadInput for a mass that is not above 0: the operator may be singular then.
  [[nodiscard]] StaggeredSolve solve(std::span<const std::complex<double>> source, double mass,
                                     double tolerance = 1e-10, std::int64_t iterations = 10000);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
