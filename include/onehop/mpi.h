// For programs that use MPI themselves. This is the only header of onehop that includes mpi.h. onehop is neither built
// with nor linked to an MPI library; it uses the one that the program has loaded.
#pragma once

#include <mpi.h>

#include "onehop/group.h"

namespace onehop {

// Makes a group of the ranks of a communicator, which is duplicated. Collective over `comm`. Throws Error if MPI is not
// initialised.
[[nodiscard]] inline Group group_from_mpi(MPI_Comm comm) { return Group::from_mpi(static_cast<const void*>(&comm)); }

}  // namespace onehop
