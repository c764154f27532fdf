// Finds and loads a library that MPI libraries and Python packages ship, such as UCX and PMIx.
#pragma once

#include <dlfcn.h>

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace onehop::detail {

// The library to search for: "libucp.so.0", and the environment variable with which users name another one, or "none".
struct ShippedLibrary {
  const char* file_name;
  const char* variable;
  const char* called;  // "UCX", for messages
};

// Loads the library of this path or name and keeps it. False and a reason if that fails.
using LibraryLoader = std::function<bool(const std::string& name, std::string& reason)>;

// Whether the user switched the library off: its variable is "none". `tried` is told so.
[[nodiscard]] bool switched_off(const ShippedLibrary& sought, std::vector<std::string>& tried);

// Searches a library that is not in the process yet: the one that the variable names and then no other one, else in the
// folders of shipped_library_folders(), else where the system searches. `tried` receives the searched places.
bool load_shipped_library(const ShippedLibrary& sought, const LibraryLoader& load, std::vector<std::string>& tried);

// The same for a function that returns what it has loaded, as a pointer that may be null.
template <class Load>
auto load_shipped_library_with(const ShippedLibrary& sought, const Load& load, std::vector<std::string>& tried) {
  decltype(load(std::string(), std::declval<std::string&>())) found;
  const auto keep = [&](const std::string& name, std::string& reason) {
    found = load(name, reason);
    return found != nullptr;
  };
  load_shipped_library(sought, keep, tried);
  return found;
}

// Returns the library that search(tried) finds, which is never unloaded. Searches again only until it is found. `tried`
// receives the searched places of the last search.
template <class Library, class Search>
const Library* find_once(const Search& search, std::vector<std::string>& tried) {
  static std::mutex mutex;
  static const Library* found = nullptr;
  static std::vector<std::string> places;
  const std::lock_guard guard(mutex);
  if (found == nullptr) {
    places.clear();
    found = search(places).release();
  }
  tried = places;
  return found;
}

// The searched places, a line each, for messages.
[[nodiscard]] std::string joined(const std::vector<std::string>& tried);

// dlopen with RTLD_NOW | RTLD_LOCAL | `more`. Null and a reason if that fails.
[[nodiscard]] void* open_library(const std::string& name, std::string& reason, int more = 0);

// The file from which the function came, or `name` if the loader does not know.
[[nodiscard]] std::string path_of_function(void* function, const std::string& name);

// Binds functions by name, and remembers the first that is missing.
class FunctionBinder {
 public:
  explicit FunctionBinder(void* handle) : handle_(handle) {}

  template <class Function>
  void bind(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }

  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  void* handle_;
  std::string missing_;
};

}  // namespace onehop::detail
