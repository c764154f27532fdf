// Finds the MPI launcher that started this process, and its library.
#pragma once

#include <vector>

#include "src/mpi/library.h"
#include "src/mpi/library_folder.h"
#include "src/mpi/mpi.h"

namespace onehop::detail {

// Whether a library with this ABI works under that kind of launcher.
[[nodiscard]] bool fits_launcher(MpiAbiKind abi, MpiLauncher::Kind launcher);

// Folders that may hold the launcher's MPI library, the most likely first.
[[nodiscard]] std::vector<LibraryFolder> mpi_launcher_folders();

// Library folders of the Python environment to which this program belongs: that of VIRTUAL_ENV, and that of the
// interpreter by the name under which it was called.
[[nodiscard]] std::vector<LibraryFolder> environment_library_folders();

// Folders in which MPI libraries and Python packages ship the libraries that they use, such as UCX and PMIx.
[[nodiscard]] std::vector<LibraryFolder> shipped_library_folders();

}  // namespace onehop::detail
