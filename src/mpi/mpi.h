// The interface to MPI for the rest of onehop. No MPI is needed to build onehop: a library is searched for and loaded
// on first use. It may have the ABI of Open MPI, that of MPICH (also Intel MPI, MVAPICH, Cray), or the standard ABI.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/channel/transport/transport.h"
#include "src/group/bootstrap.h"

namespace onehop::detail {

// This rank's place in a communicator, and a bootstrap over a duplicate of it.
struct MpiRanks {
  int rank = 0;
  int size = 1;
  std::unique_ptr<Bootstrap> bootstrap;
};

// The MPI launcher that started this process, according to its environment.
struct MpiLauncher {
  enum class Kind { none, open_mpi, mpich, other };
  Kind kind = Kind::none;
  int ranks = 0;     // 0: unknown
  std::string name;  // for messages: "mpiexec of Open MPI"
};
[[nodiscard]] MpiLauncher mpi_launcher();

// The ranks of the communicator whose MPI_Comm handle `comm` points to; it is duplicated. Collective over it. Throws
// Error if no MPI is loaded and initialised in this process.
[[nodiscard]] MpiRanks mpi_from_communicator(const void* comm);

// The ranks of MPI_COMM_WORLD. Loads and initialises an MPI if necessary. An MPI that onehop initialised is finalised
// when the process ends with exit status 0; with another status, ending the other ranks is left to the launcher. Throws
// Error with the searched places if no MPI is found.
[[nodiscard]] MpiRanks mpi_world();

// The library that is or would be used, for display. Loads it, but does not initialise it.
struct MpiLibraryInfo {
  std::string path;  // empty: none found
  std::string abi;   // "Open MPI", "MPICH", "standard"
  std::string version;
  std::vector<std::string> tried;  // the searched places, each with the result
};
[[nodiscard]] MpiLibraryInfo mpi_library_info();

// Whether some MPI in this process is initialised and not yet finalised. Loads nothing.
[[nodiscard]] bool mpi_is_running();

}  // namespace onehop::detail
