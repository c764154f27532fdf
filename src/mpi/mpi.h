// The interface to MPI for the rest of onehop. No MPI is needed to build onehop: a library is searched for and loaded
// on first use. It may have the ABI of Open MPI, that of MPICH (also Intel MPI, MVAPICH, Cray), or the standard ABI.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/channel/transport/transport.h"
#include "src/group/bootstrap.h"

namespace onehop::detail {

// What a group is made of: this rank's place in a communicator, and the means to talk over a duplicate of it.
struct MpiRanks {
  int rank = 0;
  int size = 1;
  std::unique_ptr<Bootstrap> bootstrap;
};

// What the environment says about an MPI launcher.
struct MpiLauncher {
  enum class Kind { none, open_mpi, mpich, other };
  Kind kind = Kind::none;
  int ranks = 0;     // 0: the launcher does not tell
  std::string name;  // for messages: "mpiexec of Open MPI"
};
[[nodiscard]] MpiLauncher mpi_launcher();

// From the MPI_Comm handle that `comm` points to; the communicator is duplicated. Collective over it. Throws Error
// where no MPI is loaded and initialised in this process.
[[nodiscard]] MpiRanks mpi_from_communicator(const void* comm);

// From MPI_COMM_WORLD. Loads an MPI and initialises it if nobody has done so; then it is finalised when the process
// ends in order, with exit status 0 (a rank that ends with another status leaves the rest to the launcher, which ends
// them all). Throws Error with the searched places if no MPI is found.
[[nodiscard]] MpiRanks mpi_world();

// The library that is, or would be, used: its path, ABI and version, for people. Loads it, but does not initialise it.
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
