// Wilson quarks, with or without the clover term, on a gauge field of four directions that is split over ranks:
//
//   M = A - kappa D,   (D v)(x) = sum over mu of (1 - gamma_mu) U_mu(x) v(x + mu) + (1 + gamma_mu) adjoint(U_mu(x - mu)) v(x - mu),
//
// with the gamma matrices of docs/reference/lattice_wilson.md and A = 1 or the blocks of clover.h with weight kappa * c_sw. With kappa = 1 / (8 + 2 m)
// this is 2 kappa times the operator of bare mass m. A field is this rank's block in lexicographic order, [site][spin][colour], 12 complex
// numbers a site; several right-hand sides are one such field after the other.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "onehop/lattice/gauge.h"
#include "onehop/lattice/solver.h"

namespace onehop::lattice {

struct WilsonOptions {
  double kappa = 0.125;
  double csw = 0;                         // 0: no clover term
  bool antiperiodic = true;               // in the last direction
  bool two_rows = false;                  // links are kept as 12 numbers instead of 18
  Precision precision = Precision::full;  // of apply, hop and precondition: full or single
  int lanes = 0;                          // of a vector, at most; 0: as many as the processor's have
  int threads = 0;                        // 0: as many cores as are this rank's
};

enum class WilsonMethod : std::uint8_t {
  bicgstab,
  normal,  // conjugate gradients on the normal equations
};

struct WilsonSolver {
  WilsonMethod method = WilsonMethod::bicgstab;
  // Steps of the Schwarz preconditioner, 0 for none: every rank improves its own block so many times as if there was nothing beyond it,
  // without communication.
  int schwarz = 0;
};

struct WilsonSolve {
  std::vector<std::complex<double>> solution;  // as the source
  SolverReport report;
};

// kappa for the bare mass m: 1 / (8 + 2 m). Throws BadInput for -4.
[[nodiscard]] double wilson_kappa(double mass);

class Wilson {
 public:
  // Copies the links. Collective, as everything here. Throws BadInput for other than four directions, odd extents, blocks that are too thin,
  // a kappa or c_sw that is no number; Error where a block of the clover term is singular.
  explicit Wilson(const Gauge& gauge, const WilsonOptions& options = {});
  Wilson(Wilson&&) noexcept;
  Wilson& operator=(Wilson&&) noexcept;
  ~Wilson();

  [[nodiscard]] const WilsonOptions& options() const noexcept;
  [[nodiscard]] const Geometry& geometry() const noexcept;  // of the vectors inside, in the precision of the options
  [[nodiscard]] int threads() const noexcept;

  // Of one or several right-hand sides. Throw BadInput for another length.
  [[nodiscard]] std::vector<std::complex<double>> hop(std::span<const std::complex<double>> fields,
                                                      bool dagger = false);  // D
  [[nodiscard]] std::vector<std::complex<double>> apply(std::span<const std::complex<double>> fields,
                                                        bool dagger = false);  // M
  // The preconditioned operator A - kappa^2 D A^-1 D on the even sites; odd ones are not looked at, and are 0 in the result.
  [[nodiscard]] std::vector<std::complex<double>> precondition(std::span<const std::complex<double>> fields,
                                                               bool dagger = false);

  // Solves M x = b through the even sites. A solve that does not converge gives what it has and says so. Throws BadInput for another length,
  // a tolerance that is not above 0, half precision of the whole, and a Schwarz preconditioner with another method than BiCGStab.
  [[nodiscard]] WilsonSolve solve(std::span<const std::complex<double>> sources, const SolverOptions& options = {},
                                  const WilsonSolver& solver = {});

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
