#include "onehop/lattice/solver.h"

#include "onehop/error.h"

namespace onehop::lattice {

void check_half_halo(const SolverOptions& options) {
  if (!options.half_halo) return;
  if (!(options.sloppy_precision < options.precision))
    throw BadInput(
        "solver: expected a half-precision halo only with a sloppy precision below the precision of the solution");
  if (options.reproducible)
    throw BadInput(
        "solver: expected either a half-precision halo or a reproducible solve: the halo rounds numbers that cross "
        "between ranks");
}

}  // namespace onehop::lattice
