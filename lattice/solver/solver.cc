#include "onehop/lattice/solver.h"

#include "onehop/error.h"

namespace onehop::lattice {

void check_faces(const SolverOptions& options) {
  if (!options.half_faces) return;
  if (!(options.inner < options.precision))
    throw BadInput(
        "solver: expected half faces with inner iterations in a lower precision than the whole, which corrects them");
  if (options.reproducible)
    throw BadInput(
        "solver: expected either half faces or a reproducible solve: half faces round what crosses between ranks");
}

}  // namespace onehop::lattice
