// Wilson quarks, with or without the clover term, on a gauge field of four directions that is split over ranks:
//
//   M = A - kappa D,   (D v)(x) = sum over mu of (1 - gamma_mu) U_mu(x) v(x + mu) + (1 + gamma_mu) adjoint(U_mu(x -
//   mu)) v(x - mu),
//
// with the gamma matrices of docs/reference/lattice_wilson.md. A is 1, or the blocks of clover.h with the weight kappa
// * c_sw. With kappa = 1 / (8 + 2 m), M is 2 kappa times the operator of bare mass m. A field is this rank's block in
// lexicographic order, [site][spin][colour], with 12 complex numbers per site; several right-hand sides are stored one
// field after the other.
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
  // The clover coefficient; 0 leaves the clover term out.
  double csw = 0;
  // Boundary condition in the last direction.
  bool antiperiodic = true;
  // Real numbers kept per link, 18 or 12. With 12 the third row of a link is reconstructed from the first two.
  int recon = 18;
  // Precision of apply, dslash and precondition: double or single.
  Precision precision = Precision::double_;
  // The largest number of lanes of a vector; 0: as many as the processor's vectors have.
  int lanes = 0;
  // Threads of this rank; 0: ONEHOP_THREADS, or this rank's share of the cores.
  int threads = 0;
};

enum class WilsonMethod : std::uint8_t {
  automatic,  // BiCGStab, and CGNR from where it stalls
  bicgstab,
  cgnr,  // conjugate gradients on the normal equations
};

struct WilsonSolver {
  WilsonMethod method = WilsonMethod::automatic;
  // Number of Schwarz preconditioner steps, 0 for none. In each step every rank refines the solution on its own block
  // with Dirichlet boundaries, without communication.
  int schwarz = 0;
};

struct WilsonSolve {
  std::vector<std::complex<double>> solution;  // same layout as the sources
  SolverReport report;
};

// Returns kappa for the bare mass m: 1 / (8 + 2 m). Throws BadInput for m = -4.
[[nodiscard]] double wilson_kappa(double mass);

// The Wilson operator of one gauge field. All member functions that take fields are collective.
class Wilson {
 public:
  // Copies the links. Collective. Throws BadInput unless there are four directions, extents are even, blocks are thick
  // enough, `kappa` and `csw` are finite and `recon` is 12 or 18; Error if a block of the clover term is singular.
  explicit Wilson(const Gauge& gauge, const WilsonOptions& options = {});
  Wilson(Wilson&&) noexcept;
  Wilson& operator=(Wilson&&) noexcept;
  ~Wilson();

  [[nodiscard]] const WilsonOptions& options() const noexcept;
  // The layout of vectors inside the operator, for the precision of the options.
  [[nodiscard]] const Geometry& geometry() const noexcept;
  [[nodiscard]] int threads() const noexcept;

  // D v for one or several right-hand sides, or its adjoint. Throws BadInput for another length.
  [[nodiscard]] std::vector<std::complex<double>> dslash(std::span<const std::complex<double>> fields,
                                                         bool dagger = false);
  // M v, or its adjoint. Throws BadInput for another length.
  [[nodiscard]] std::vector<std::complex<double>> apply(std::span<const std::complex<double>> fields,
                                                        bool dagger = false);
  // The even-odd preconditioned operator A - kappa^2 D A^-1 D on the even sites, or its adjoint. Ignores odd sites and
  // sets them to 0 in the result. Throws BadInput for another length.
  [[nodiscard]] std::vector<std::complex<double>> precondition(std::span<const std::complex<double>> fields,
                                                               bool dagger = false);

  // Solves M x = b with even-odd preconditioning. A solve that does not converge returns the best solution it found,
  // with `report.converged` false. Throws BadInput for another length, a tolerance that is not above 0, half precision
  // as the outer precision, and a Schwarz preconditioner with CGNR.
  [[nodiscard]] WilsonSolve solve(std::span<const std::complex<double>> sources, const SolverOptions& options = {},
                                  const WilsonSolver& solver = {});

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
