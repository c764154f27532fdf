// For programs that use MPI themselves. The only header of onehop that includes mpi.h; onehop itself is neither built with MPI
// nor linked to it, and finds the one that the program has loaded.
#pragma once

#include <mpi.h>

#include "onehop/group.h"

namespace onehop {

// The ranks of a communicator, which is duplicated. Collective over it. Throws Error if MPI is not initialised.
[[nodiscard]] inline Group group_from_mpi(MPI_Comm comm) { return Group::from_mpi(static_cast<const void*>(&comm)); }

}  // namespace onehop
