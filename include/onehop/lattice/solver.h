// What all solvers of lattice operators take and give.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <vector>

#include "onehop/lattice/precision.h"

namespace onehop::lattice {

// After so many iterations, the residual relative to the source as the iteration carries it along.
using SolverProgress = std::function<void(std::int64_t iterations, double residual)>;

struct SolverOptions {
  double tolerance = 1e-10;               // of |b - M x| / |b|
  std::int64_t iterations = 10000;        // at most
  Precision precision = Precision::full;  // of the whole, outside
  Precision inner = Precision::full;      // of most iterations; what they find is corrected in `precision`
  bool reproducible = false;              // sums that are the same bits on every grid of ranks
  bool half_faces = false;                // faces of inner iterations in a lower precision travel as 16-bit numbers
  SolverProgress progress = {};           // called on every rank now and then, at most some times a second
};

// Throws BadInput for half_faces without inner iterations in a lower precision, and together with `reproducible`, as they round only what
// crosses between ranks.
void check_faces(const SolverOptions& options);

// Of one rank.
struct SolverReport {
  std::int64_t iterations = 0;
  std::int64_t corrections = 0;   // how often the residual was computed anew in the outer precision
  std::vector<double> residuals;  // |b - M x| / |b| of each solution, made anew with the whole operator
  bool converged = false;         // whether they are all at most the tolerance
  double seconds = 0;
  double communication_seconds = 0;  // in faces and sums: starting them, and waiting for them
  double flops = 0;                  // of all applications of the operator and of the solver's own sums of vectors
  double bytes = 0;                  // that they read and wrote

  [[nodiscard]] double worst_residual() const {
    double worst = 0;
    for (const double each : residuals) worst = each > worst ? each : worst;
    return worst;
  }
};

}  // namespace onehop::lattice
