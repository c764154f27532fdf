#include "onehop/lattice/solver.h"

#include <string>

#include "onehop/error.h"

namespace onehop::lattice {

void check_half_halo(const SolverOptions& options) {
  if (!options.half_halo) return;
  if (!(options.sloppy_precision < options.precision))
    throw BadInput("solver: expected a sloppy precision below " + std::string(to_string(options.precision)) +
                   " with a half-precision halo, found " + std::string(to_string(options.sloppy_precision)));
  if (options.reproducible)
    throw BadInput(
        "solver: expected either a half-precision halo or a reproducible solve, found both: the halo rounds only the "
        "numbers that cross between ranks, so the result would depend on the grid");
}

}  // namespace onehop::lattice
