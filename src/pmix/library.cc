#include "src/pmix/library.h"

#include <dlfcn.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <type_traits>

#include "src/base/env.h"
#include "src/mpi/launcher.h"

namespace onehop::detail::pmix {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libpmix.so.2";

// Empty if all functions were found, else the name of one that is missing.
std::string bind_all(Library& to, void* handle) {
  std::string missing;
  const auto bind = [&](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  bind(to.init, "PMIx_Init");
  bind(to.finalize, "PMIx_Finalize");
  bind(to.put, "PMIx_Put");
  bind(to.commit, "PMIx_Commit");
  bind(to.fence, "PMIx_Fence_nb");
  bind(to.get, "PMIx_Get");
  bind(to.status_text, "PMIx_Error_string");
  return missing;
}

// Null and a reason if that fails. `more` are flags of dlopen.
std::unique_ptr<Library> load(const std::string& name, std::string& reason, int more = 0) {
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | more);
  if (handle == nullptr) {
    const char* const error = ::dlerror();
    reason = error == nullptr ? name + ": cannot be loaded" : error;
    return nullptr;
  }
  auto library = std::make_unique<Library>();
  if (const std::string missing = bind_all(*library, handle); !missing.empty()) {
    reason = name + ": has no " + missing + "; PMIx 3 or newer is expected";
    return nullptr;
  }
  Dl_info info{};
  const bool known = ::dladdr(reinterpret_cast<void*>(library->init), &info) != 0 && info.dli_fname != nullptr;
  library->path = known ? info.dli_fname : name;
  return library;
}

std::unique_ptr<Library> search(std::vector<std::string>& tried) {
  const auto wanted = env::text("ONEHOP_PMIX");
  if (wanted && *wanted == "none") {
    tried.emplace_back("ONEHOP_PMIX=none: PMIx is switched off");
    return nullptr;
  }
  std::string reason;
  if (auto library = load(file_name, reason, RTLD_NOLOAD)) return library;
  tried.emplace_back("this process: no PMIx is loaded");
  if (wanted) {
    if (auto library = load(*wanted, reason)) return library;
    tried.push_back("ONEHOP_PMIX=" + *wanted + ": " + reason);
    return nullptr;  // do not fall back to another library than the requested one
  }
  std::set<fs::path> seen;
  for (const auto& [folder, distrust] : shipped_library_folders()) {
    std::error_code error;
    const fs::path file = folder / file_name;
    if (!seen.insert(folder).second) continue;
    if (!fs::exists(file, error)) {
      tried.push_back(folder.string() + ": no " + file_name + " there");
    } else if (!distrust.empty()) {
      tried.push_back(file.string() + ": not loaded, because " + distrust + "; ONEHOP_PMIX=" + file.string() +
                      " loads it");
    } else if (auto library = load(file.string(), reason)) {
      return library;
    } else {
      tried.push_back(reason);
    }
  }
  if (auto library = load(file_name, reason)) return library;
  tried.push_back(reason);
  return nullptr;
}

}  // namespace

const Library* find_library(std::vector<std::string>& tried) {
  static std::mutex mutex;
  static const Library* found = nullptr;  // never unloaded
  static std::vector<std::string> places;
  const std::lock_guard guard(mutex);
  if (found == nullptr) {
    places.clear();
    found = search(places).release();
  }
  tried = places;
  return found;
}

}  // namespace onehop::detail::pmix
