// Options and results that the solvers of all lattice operators share.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "onehop/lattice/precision.h"

namespace onehop::lattice {

// Receives the number of iterations so far and the iterated residual relative to the source, |r| / |b|.
using SolverProgress = std::function<void(std::int64_t iterations, double residual)>;

struct SolverOptions {
  // The solve has converged when |b - M x| <= tolerance * |b|.
  double tolerance = 1e-10;
  // The largest number of iterations.
  std::int64_t iterations = 10000;
  // Precision of the solution and of the residual that decides about convergence: single or double.
  Precision precision = Precision::double_;
  // Precision of most iterations. If it is lower than `precision`, the solver recomputes the residual in `precision`
  // from time to time (reliable updates).
  Precision sloppy_precision = Precision::double_;
  // Sums over sites give the same bits on every grid of ranks and with every number of threads.
  bool reproducible = false;
  // The halo of sloppy iterations travels as 16-bit numbers.
  bool half_halo = false;
  // Called on every rank, a few times per second at most.
  SolverProgress progress = {};
};

// Throws BadInput if `half_halo` is set without a sloppy precision below `precision`, or together with `reproducible`:
// a half-precision halo rounds only the numbers that cross between ranks, so the result would depend on the grid.
void check_half_halo(const SolverOptions& options);

// The outcome of a solve. Times, flops and bytes are those of one rank.
struct SolverReport {
  std::int64_t iterations = 0;
  std::int64_t reliable_updates = 0;  // how often the residual was recomputed in the outer precision
  std::string method;                 // that ended the solve: "cg", "bicgstab" or "cgnr"
  std::vector<double> residuals;      // |b - M x| / |b| of each solution, recomputed with the whole operator
  bool converged = false;             // whether all of them are at most the tolerance
  double seconds = 0;
  double communication_seconds = 0;  // spent starting halo exchanges and sums over the ranks, and waiting for them
  double flops = 0;                  // floating-point operations of the operator and of the solver's linear algebra
  double bytes = 0;                  // bytes that they read and wrote

  [[nodiscard]] double worst_residual() const {
    double worst = 0;
    for (const double each : residuals) worst = each > worst ? each : worst;
    return worst;
  }
};

}  // namespace onehop::lattice
