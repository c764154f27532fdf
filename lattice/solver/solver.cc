#include "onehop/lattice/solver.h"

#include <string>
#include <vector>

#include "lattice/solver/same_call.h"
#include "onehop/error.h"

namespace onehop::lattice {

void detail::require_same(const Group& group, const char* function, std::span<const std::complex<double>> fields,
                          std::initializer_list<onehop::detail::Argument> arguments, const SolverOptions* options) {
  std::vector<onehop::detail::Argument> all(arguments);
  all.emplace_back("size of the fields", fields.size());
  if (options != nullptr) {
    all.emplace_back("tolerance", options->tolerance);
    all.emplace_back("iterations", options->iterations);
    all.emplace_back("precision", options->precision);
    all.emplace_back("sloppy_precision", options->sloppy_precision);
    all.emplace_back("reproducible", options->reproducible);
    all.emplace_back("half_halo", options->half_halo);
  }
  onehop::detail::require_same(group, function, all);
}

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
