#include "src/mpi/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

namespace onehop::detail {
namespace {

namespace fs = std::filesystem;

std::optional<int> number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc{} || end != view.data() + view.size()) return std::nullopt;
  return value;
}

// The parent of a process; 0 if it cannot be known.
pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // The command name stands in parentheses and may contain any character.
  const auto close = text.rfind(')');
  if (close == std::string::npos || close + 4 >= text.size()) return 0;
  return static_cast<pid_t>(std::strtol(text.c_str() + close + 4, nullptr, 10));
}

bool is_launcher(std::string_view program) {
  constexpr std::array names{"hydra_pmi_proxy", "hydra_bstrap_proxy", "prterun", "prte", "prted", "orterun", "orted",
                             "mpirun",          "mpirun_rsh"};
  return program.starts_with("mpiexec") || std::ranges::find(names, program) != names.end();
}

}  // namespace

MpiLauncher mpi_launcher() {
  using Kind = MpiLauncher::Kind;
  if (const auto size = number("OMPI_COMM_WORLD_SIZE")) return {Kind::open_mpi, *size, "mpiexec of Open MPI"};
  // Slurm sets the same variables as MPICH's launcher, but for any MPI.
  const bool slurm = std::getenv("SLURM_STEP_ID") != nullptr;
  if (const auto size = number("PMI_SIZE")) {
    if (slurm) return {Kind::other, *size, "srun"};
    return {Kind::mpich, *size, "mpiexec of MPICH or a relative of it"};
  }
  if (const auto size = number("MV2_COMM_WORLD_SIZE")) return {Kind::mpich, *size, "mpirun_rsh of MVAPICH"};
  if (std::getenv("PMIX_RANK") != nullptr) return {Kind::other, number("SLURM_NTASKS").value_or(0), "a PMIx launcher"};
  return {};
}

bool fits_launcher(MpiAbiKind abi, MpiLauncher::Kind launcher) {
  if (launcher == MpiLauncher::Kind::open_mpi) return abi == MpiAbiKind::open_mpi;
  if (launcher == MpiLauncher::Kind::mpich) return abi != MpiAbiKind::open_mpi;
  return true;
}

std::vector<fs::path> library_folders_beside(const fs::path& folder) {
  const fs::path prefix = folder.parent_path();
  std::vector<fs::path> folders;
  for (const char* name : {"lib", "lib64", "lib/release", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"})
    folders.push_back(prefix / name);
  return folders;
}

std::vector<fs::path> mpi_launcher_folders() {
  std::vector<fs::path> folders;
  if (mpi_launcher().kind == MpiLauncher::Kind::none) return folders;
  if (const char* folder = std::getenv("OMPI_LIBDIR_LOC")) folders.emplace_back(folder);
  for (const char* variable : {"OPAL_PREFIX", "I_MPI_ROOT"}) {
    if (const char* prefix = std::getenv(variable)) {
      for (auto& folder : library_folders_beside(fs::path(prefix) / "bin")) folders.push_back(std::move(folder));
    }
  }
  // The launcher, or its helper on this machine, is an ancestor of this process.
  constexpr int generations = 16;
  pid_t pid = ::getppid();
  for (int i = 0; i < generations && pid > 1; ++i, pid = parent_of(pid)) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
    if (error || !is_launcher(program.filename().string())) continue;
    for (auto& folder : library_folders_beside(program.parent_path())) folders.push_back(std::move(folder));
  }
  return folders;
}

}  // namespace onehop::detail
