#include "onehop/lattice/solver.h"

#include <string>

#include "onehop/error.h"

namespace onehop::lattice {

Precision precision_from_string(std::string_view name) {
  for (const Precision each : {Precision::half, Precision::single, Precision::full}) {
    if (name == to_string(each)) return each;
  }
  throw BadInput("expected a precision of half, single or double, found '" + std::string(name) + "'");
}

std::string_view to_string(Precision precision) {
  if (precision == Precision::half) return "half";
  return precision == Precision::single ? "single" : "double";
}

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
