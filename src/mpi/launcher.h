// Finds the MPI launcher that started this process, and its library.
#pragma once

#include <filesystem>
#include <vector>

#include "src/mpi/library.h"
#include "src/mpi/mpi.h"

namespace onehop::detail {

// Whether a library with this ABI works under that kind of launcher.
[[nodiscard]] bool fits_launcher(MpiAbiKind abi, MpiLauncher::Kind launcher);

// Folders that may hold the launcher's MPI library, the most likely first.
[[nodiscard]] std::vector<std::filesystem::path> mpi_launcher_folders();

// Folders of libraries that belong to a program in `folder`: .../bin -> .../lib, .../lib64, ...
[[nodiscard]] std::vector<std::filesystem::path> library_folders_beside(const std::filesystem::path& folder);

}  // namespace onehop::detail
