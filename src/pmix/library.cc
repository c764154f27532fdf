#include "src/pmix/library.h"

#include <dlfcn.h>

#include <memory>

#include "src/mpi/shipped_library.h"

namespace onehop::detail::pmix {
namespace {

constexpr ShippedLibrary sought = {.file_name = "libpmix.so.2", .variable = "ONEHOP_PMIX", .called = "PMIx"};

// Empty if all functions were found, else the name of one that is missing.
std::string bind_all(Library& to, void* handle) {
  FunctionBinder binder(handle);
  const auto bind = [&binder](auto*& function, const char* name) { binder.bind(function, name); };
  bind(to.init, "PMIx_Init");
  bind(to.finalize, "PMIx_Finalize");
  bind(to.put, "PMIx_Put");
  bind(to.commit, "PMIx_Commit");
  bind(to.fence, "PMIx_Fence_nb");
  bind(to.get, "PMIx_Get");
  bind(to.status_text, "PMIx_Error_string");
  return binder.missing();
}

// Null and a reason if that fails. `more` are flags of dlopen.
std::unique_ptr<Library> load(const std::string& name, std::string& reason, int more = 0) {
  void* const handle = open_library(name, reason, more);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
  if (const std::string missing = bind_all(*library, handle); !missing.empty()) {
    reason = name + ": has no " + missing + "; PMIx 3 or newer is expected";
    return nullptr;
  }
  library->path = path_of_function(reinterpret_cast<void*>(library->init), name);
  return library;
}

std::unique_ptr<Library> search(std::vector<std::string>& tried) {
  if (switched_off(sought, tried)) return nullptr;
  std::string reason;
  if (auto library = load(sought.file_name, reason, RTLD_NOLOAD)) return library;
  tried.emplace_back("this process: no PMIx is loaded");
  return load_shipped_library_with(
      sought, [](const std::string& name, std::string& why) { return load(name, why); }, tried);
}

}  // namespace

const Library* find_library(std::vector<std::string>& tried) { return find_once<Library>(search, tried); }

}  // namespace onehop::detail::pmix
