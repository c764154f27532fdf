// The ranks that a launcher with PMIx started (prterun, srun --mpi=pmix), without MPI.
#pragma once

#include <memory>

#include "src/group/bootstrap.h"

namespace onehop::detail {

// Whether a launcher offers PMIx to this process, by the variables that it has set.
[[nodiscard]] bool is_pmix_offered();

struct PmixRanks {
  int rank = 0;
  int size = 1;
  std::unique_ptr<Bootstrap> bootstrap;
};

// All ranks of this launch. Connects to the launcher, and takes leave of it when the program ends with status 0. Throws
// Error if there is no client library of PMIx, or if it cannot reach the launcher.
[[nodiscard]] PmixRanks pmix_world();

}  // namespace onehop::detail
