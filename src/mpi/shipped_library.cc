#include "src/mpi/shipped_library.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "src/base/env.h"
#include "src/mpi/launcher.h"

namespace onehop::detail {

namespace fs = std::filesystem;

bool switched_off(const ShippedLibrary& sought, std::vector<std::string>& tried) {
  const auto wanted = env::text(sought.variable);
  if (!wanted || *wanted != "none") return false;
  tried.push_back(std::string(sought.variable) + "=none: " + sought.called + " is switched off");
  return true;
}

bool load_shipped_library(const ShippedLibrary& sought, const LibraryLoader& load, std::vector<std::string>& tried) {
  const std::string setting = std::string(sought.variable) + "=";
  std::string reason;
  if (const auto wanted = env::text(sought.variable)) {
    if (load(*wanted, reason)) return true;
    tried.push_back(setting + *wanted + ": " + reason);
    return false;  // do not fall back to another library than the requested one
  }
  std::set<fs::path> seen;
  for (const LibraryFolder& folder : shipped_library_folders()) {
    std::error_code error;
    const fs::path file = folder.path / sought.file_name;
    if (!seen.insert(folder.path).second) continue;
    if (!fs::exists(file, error)) {
      tried.push_back(folder.path.string() + ": no " + sought.file_name + " there");
    } else if (const std::string distrust = distrust_of(folder, sought.file_name); !distrust.empty()) {
      std::string why = file.string() + ": not loaded, because " + distrust;
      tried.push_back(why.append("; ").append(setting).append(file.string()).append(" loads it"));
    } else if (load(file.string(), reason)) {
      return true;
    } else {
      tried.push_back(reason);
    }
  }
  if (load(sought.file_name, reason)) return true;
  tried.push_back(reason);
  return false;
}

std::string joined(const std::vector<std::string>& tried) {
  std::string text;
  for (const auto& place : tried) text += "\n  " + place;
  return text;
}

void* open_library(const std::string& name, std::string& reason, int more) {
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | more);
  if (handle == nullptr) {
    const char* const error = ::dlerror();
    reason = error == nullptr ? name + ": cannot be loaded" : error;
  }
  return handle;
}

std::string path_of_function(void* function, const std::string& name) {
  Dl_info info{};
  const bool known = ::dladdr(function, &info) != 0 && info.dli_fname != nullptr;
  return known ? info.dli_fname : name;
}

}  // namespace onehop::detail
