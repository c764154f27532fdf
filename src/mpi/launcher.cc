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

// Whether a process runs as this user or as root. An ancestor may be anybody's: sudo starts programs for others. The
// owner of /proc/PID would not do: it is root for every process that may not be traced.
bool is_own_process(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  while (file >> word) {
    if (word != "Uid:") continue;
    uid_t real = 0;
    uid_t effective = 0;
    const auto trusted = [](uid_t user) { return user == ::geteuid() || user == 0; };
    return file >> real >> effective && trusted(real) && trusted(effective);
  }
  return false;
}

bool is_launcher(std::string_view program) {
  constexpr std::array names{"hydra_pmi_proxy", "hydra_bstrap_proxy", "prterun", "prte", "prted", "orterun", "orted",
                             "mpirun",          "mpirun_rsh"};
  return program.starts_with("mpiexec") || std::ranges::find(names, program) != names.end();
}

// Where the programs are of the environment over which a virtual one lies, and whose packages it sees; empty: none.
fs::path environment_below(const fs::path& environment) {
  std::ifstream file(environment / "pyvenv.cfg");
  constexpr std::string_view home = "home = ";
  fs::path programs;
  bool sees_packages = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(home)) programs = line.substr(home.size());
    sees_packages |= line == "include-system-site-packages = true";
  }
  return sees_packages && programs.is_absolute() ? programs : fs::path();
}

void add_environment(const fs::path& environment, std::vector<LibraryFolder>& folders) {
  add_library_folders_beside(environment / "bin", folders);
  if (const fs::path below = environment_below(environment); !below.empty()) add_library_folders_beside(below, folders);
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

std::vector<LibraryFolder> environment_library_folders() {
  std::vector<LibraryFolder> folders;
  const char* const environment = std::getenv("VIRTUAL_ENV");
  if (environment != nullptr && fs::path(environment).is_absolute()) add_environment(environment, folders);
  // The interpreter of a Python environment is a symbolic link; the name by which it was called gives the environment.
  std::ifstream file("/proc/self/cmdline");
  std::string program;
  std::getline(file, program, '\0');
  std::error_code error;
  if (program.find('/') != std::string::npos) {
    const fs::path programs = fs::absolute(program, error).lexically_normal().parent_path();
    if (programs.filename() == "bin") {
      add_environment(programs.parent_path(), folders);
    } else {
      add_library_folders_beside(programs, folders);
    }
  }
  return folders;
}

std::vector<LibraryFolder> mpi_launcher_folders() {
  std::vector<LibraryFolder> folders;
  if (mpi_launcher().kind == MpiLauncher::Kind::none) return folders;
  if (const char* folder = std::getenv("OMPI_LIBDIR_LOC")) folders.push_back(named_library_folder(folder));
  for (const char* variable : {"OPAL_PREFIX", "I_MPI_ROOT"}) {
    if (const char* prefix = std::getenv(variable)) add_library_folders_beside(fs::path(prefix) / "bin", folders);
  }
  // The launcher, or its helper on this machine, is an ancestor of this process.
  constexpr int generations = 16;
  pid_t pid = ::getppid();
  for (int i = 0; i < generations && pid > 1; ++i, pid = parent_of(pid)) {
    if (!is_own_process(pid)) break;
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
    if (error || !is_launcher(program.filename().string())) continue;
    add_library_folders_beside(program.parent_path(), folders);
  }
  return folders;
}

std::vector<LibraryFolder> shipped_library_folders() {
  std::vector<LibraryFolder> folders;
  std::error_code error;
  const auto add_packages = [&](const LibraryFolder& packages, const char* inside) {
    if (fs::is_directory(packages.path / inside, error))
      folders.push_back({packages.path / inside, packages.distrust, packages.owner});
  };
  const auto add_library = [&](const LibraryFolder& lib) {
    folders.push_back(lib);
    add_packages(lib, "openmpi");
    for (const auto& entry : fs::directory_iterator(lib.path, error)) {
      if (!entry.path().filename().string().starts_with("python3")) continue;
      add_packages({entry.path(), lib.distrust, lib.owner}, "site-packages/libucx/lib");
    }
  };
  for (const LibraryFolder& lib : mpi_launcher_folders()) {
    folders.push_back(lib);
    add_packages(lib, "openmpi");
  }
  for (const LibraryFolder& lib : environment_library_folders()) add_library(lib);
  return folders;
}

}  // namespace onehop::detail
