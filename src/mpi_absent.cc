// Stands in for src/mpi/*.cc until they are there; to be deleted by the change that adds them.
#include "mpi/mpi.h"
#include "transport/transport.h"
namespace onehop::detail {
MpiRanks mpi_from_communicator(const void*) { throw Error("this build has no MPI"); }
MpiRanks mpi_world() { throw Error("this build has no MPI"); }
MpiLibraryInfo mpi_library_info() { return {}; }
bool mpi_is_running() { return false; }
}
