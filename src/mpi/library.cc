#include "src/mpi/library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/mpi/launcher.h"
#include "src/mpi/shipped_library.h"

namespace onehop::detail {

namespace fs = std::filesystem;

void* MpiLibrary::find(const char* name) const noexcept { return ::dlsym(handle_, name); }

void* MpiLibrary::symbol(const char* name) const {
  void* const own = find("PMPI_Initialized");
  const bool is_global = own != nullptr && own == ::dlsym(RTLD_DEFAULT, "PMPI_Initialized");
  if (void* found = is_global ? ::dlsym(RTLD_DEFAULT, name) : nullptr) return found;
  if (void* found = find(name)) return found;
  throw Error("the MPI library " + path_ + " (" + version_ + ") has no " + name +
              ": MPI 3.1 or newer is expected; choose another library with ONEHOP_MPI=/path/to/libmpi.so");
}

namespace {

bool flag_of(const MpiLibrary& library, const char* function) {
  int (*query)(int*) = nullptr;
  library.bind(query, function);
  int flag = 0;
  query(&flag);
  return flag != 0;
}

}  // namespace

bool MpiLibrary::initialised() const { return flag_of(*this, "MPI_Initialized"); }
bool MpiLibrary::finalised() const { return flag_of(*this, "MPI_Finalized"); }

// Everything found so far, one object per library, kept to the end of the process.
class MpiSearch {
 public:
  static MpiSearch& instance() {
    // Never destroyed: groups with static lifetime may outlast it.
    static auto* search = new MpiSearch;
    return *search;
  }

  std::vector<const MpiLibrary*> in_process() {
    std::vector<std::string> names;
    ::dl_iterate_phdr(&note_name, &names);
    std::vector<const MpiLibrary*> found;
    const auto add = [&found](const MpiLibrary* library) {
      if (library != nullptr && std::ranges::find(found, library) == found.end()) found.push_back(library);
    };
    // A program may have MPI linked into itself, or load it through a wrapper library of any name.
    if (void* function = ::dlsym(RTLD_DEFAULT, "MPI_Initialized")) add(owner_of(function));
    for (const auto& name : names) {
      if (void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD)) add(adopt(handle));
    }
    std::ranges::stable_partition(found, [](const MpiLibrary* library) { return library->running(); });
    return found;
  }

  // Loads a library by path or by the name that the system knows. Null and a reason if that fails.
  const MpiLibrary* load(const std::string& name, std::string& reason) {
    const bool was_there = is_mapped(name);
    void* const handle = open_library(name, reason);
    if (handle == nullptr) return nullptr;
    MpiLibrary* library = adopt(handle);
    if (library == nullptr) {
      ::dlclose(handle);
      reason = name + ": is not an MPI library (no MPI_Init_thread)";
      return nullptr;
    }
    if (!was_there) library->loaded_here_ = true;
    if (needs_global_symbols(*library)) {
      ::dlopen(library->path().c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    }
    return library;
  }

 private:
  static bool is_mapped(const std::string& name) {
    void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) ::dlclose(handle);
    return handle != nullptr;
  }

  // Open MPI before 5 loads plugins that expect its symbols to be global.
  static bool needs_global_symbols(const MpiLibrary& library) {
    constexpr std::string_view before = "Open MPI v";
    const auto at = library.version().find(before);
    return library.abi() == MpiAbiKind::open_mpi && at != std::string::npos &&
           std::strtol(library.version().c_str() + at + before.size(), nullptr, 10) < 5;
  }

  static int note_name(dl_phdr_info* info, std::size_t, void* names) {
    const fs::path path(info->dlpi_name);
    const std::string file = path.filename().string();
    if (file.starts_with("libmpi")) {
      static_cast<std::vector<std::string>*>(names)->push_back(path.string());
    }
    return 0;
  }

  const MpiLibrary* owner_of(void* function) {
    Dl_info info{};
    if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr) return nullptr;
    void* handle = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    // The program itself is not found by its name.
    if (handle == nullptr) handle = ::dlopen(nullptr, RTLD_LAZY);
    return handle == nullptr ? nullptr : adopt(handle);
  }

  MpiLibrary* adopt(void* handle) {
    void* function = ::dlsym(handle, "MPI_Init_thread");
    Dl_info info{};
    if (function == nullptr || ::dladdr(function, &info) == 0) return nullptr;
    // A library that only depends on MPI (Fortran bindings) resolves to the same function: identify it by its file.
    const std::string path = info.dli_fname == nullptr ? "" : info.dli_fname;
    for (const auto& known : libraries_) {
      if (known->path_ == path) return known.get();
    }
    auto library = std::make_unique<MpiLibrary>();
    library->handle_ = handle;
    library->path_ = path;
    library->version_ = version_of(*library);
    library->abi_ = abi_of(*library);
    return libraries_.emplace_back(std::move(library)).get();
  }

  static std::string version_of(const MpiLibrary& library) {
    int (*query)(char*, int*) = nullptr;
    query = reinterpret_cast<decltype(query)>(library.find("MPI_Get_library_version"));
    if (query == nullptr) return "unknown version";
    std::array<char, 8193> text{};
    int length = 0;
    query(text.data(), &length);
    const std::string_view all(text.data());
    std::string line(all.substr(0, all.find('\n')));
    // "MPICH Version:      5.0.2", with blanks or a tab
    std::ranges::replace(line, '\t', ' ');
    const auto tail = std::ranges::unique(line, [](char a, char b) { return a == ' ' && b == ' '; });
    line.erase(tail.begin(), tail.end());
    return line;
  }

  static MpiAbiKind abi_of(const MpiLibrary& library) {
    if (library.find("ompi_mpi_comm_world") != nullptr) return MpiAbiKind::open_mpi;
    // A library returns -1 here if its handles are not the standard's.
    int (*query)(int*, int*) = nullptr;
    query = reinterpret_cast<decltype(query)>(library.find("MPI_Abi_get_version"));
    int major = -1, minor = -1;
    if (query != nullptr && query(&major, &minor) == 0 && major >= 1) return MpiAbiKind::standard;
    return MpiAbiKind::mpich;
  }

  std::vector<std::unique_ptr<MpiLibrary>> libraries_;
};

namespace {

std::mutex search_mutex;

std::vector<std::string> file_names(MpiLauncher::Kind kind) {
  std::vector<std::string> open_mpi{"libmpi.so.40", "libmpi.so.20"};
  std::vector<std::string> names{"libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0",
                                 "libmpi_cray.so.12"};
  if (kind == MpiLauncher::Kind::open_mpi) return open_mpi;
  if (kind != MpiLauncher::Kind::mpich) names.insert(names.begin(), open_mpi.begin(), open_mpi.end());
  return names;
}

// Library folders beside the mpiexec in PATH, and those of the Python environment to which this program belongs. Names
// that begin in the current folder do not count: that may be anybody's.
std::vector<LibraryFolder> user_folders() {
  std::vector<LibraryFolder> folders;
  std::error_code error;
  if (const char* path = std::getenv("PATH")) {
    std::string_view rest(path);
    while (!rest.empty()) {
      const auto colon = std::min(rest.find(':'), rest.size());
      const fs::path bin(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
      if (!bin.is_absolute() || !fs::exists(bin / "mpiexec", error)) continue;
      add_library_folders_beside(bin, folders);
      const fs::path real = fs::canonical(bin / "mpiexec", error);
      if (!error && real.parent_path() != bin) add_library_folders_beside(real.parent_path(), folders);
      break;
    }
  }
  for (auto& folder : environment_library_folders()) folders.push_back(std::move(folder));
  return folders;
}

const MpiLibrary* first_that_loads(const std::vector<LibraryFolder>& folders, MpiLauncher::Kind kind,
                                   std::vector<std::string>& tried) {
  std::error_code error;
  for (const LibraryFolder& folder : folders) {
    bool any = false;
    for (const auto& name : file_names(kind)) {
      const fs::path file = folder.path / name;
      if (!fs::exists(file, error)) continue;
      any = true;
      if (const std::string distrust = distrust_of(folder, name); !distrust.empty()) {
        tried.push_back(file.string() + ": not loaded, because " + distrust + "; ONEHOP_MPI=" + file.string() +
                        " loads it");
        continue;
      }
      std::string reason;
      const MpiLibrary* library = MpiSearch::instance().load(file.string(), reason);
      if (library != nullptr && fits_launcher(library->abi(), kind)) return library;
      tried.push_back(library == nullptr ? reason : file.string() + ": does not fit the launcher");
    }
    if (!any) tried.push_back(folder.path.string() + ": no MPI library there");
  }
  return nullptr;
}

const MpiLibrary* search_beyond(std::vector<std::string>& tried) {
  tried.emplace_back("this process: no MPI is loaded");

  if (const auto wanted = env::text("ONEHOP_MPI")) {
    if (*wanted == "none") {
      tried.emplace_back("ONEHOP_MPI=none: MPI is switched off");
      return nullptr;
    }
    std::string reason;
    if (const MpiLibrary* library = MpiSearch::instance().load(*wanted, reason)) return library;
    tried.push_back("ONEHOP_MPI=" + *wanted + ": " + reason);
    return nullptr;  // do not fall back to another library than the requested one
  }

  const MpiLauncher launcher = mpi_launcher();
  if (const auto* library = first_that_loads(mpi_launcher_folders(), launcher.kind, tried)) return library;
  if (const auto* library = first_that_loads(user_folders(), launcher.kind, tried)) return library;

  auto names = file_names(launcher.kind);
  names.emplace_back("libmpi.so");
  for (const auto& name : names) {
    std::string reason;
    const MpiLibrary* library = MpiSearch::instance().load(name, reason);
    if (library != nullptr && fits_launcher(library->abi(), launcher.kind)) return library;
    tried.push_back(library == nullptr ? reason : name + ": does not fit the launcher");
  }
  return nullptr;
}

const MpiLibrary* search(std::vector<std::string>& tried) {
  // A running MPI comes first: the rest of the process uses it. A library that an earlier search only tried is skipped.
  static const MpiLibrary* chosen = nullptr;
  for (const auto* library : MpiSearch::instance().in_process()) {
    if (library->running()) return library;
    if (chosen == nullptr && !library->loaded_here()) chosen = library;
  }
  if (chosen == nullptr) chosen = search_beyond(tried);
  return chosen;
}

}  // namespace

std::vector<const MpiLibrary*> mpi_libraries_in_process() {
  const std::lock_guard guard(search_mutex);
  return MpiSearch::instance().in_process();
}

const MpiLibrary* find_mpi_library(std::vector<std::string>* tried) {
  const std::lock_guard guard(search_mutex);
  std::vector<std::string> places;
  const MpiLibrary* library = search(places);
  if (tried != nullptr) *tried = std::move(places);
  return library;
}

}  // namespace onehop::detail
