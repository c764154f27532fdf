// Finds and loads a client library of PMIx, and binds the functions that onehop calls.
#pragma once

#include <string>
#include <vector>

#include "src/pmix/abi.h"

namespace onehop::detail::pmix {

// A loaded library. It is never unloaded.
struct Library {
  std::string path;

  Status (*init)(Process*, Setting*, std::size_t);
  Status (*finalize)(const Setting*, std::size_t);
  Status (*put)(std::uint8_t, const char*, Value*);
  Status (*commit)();
  Status (*fence)(const Process*, std::size_t, const Setting*, std::size_t, void (*)(Status, void*), void*);
  Status (*get)(const Process*, const char*, const Setting*, std::size_t, Value**);
  const char* (*status_text)(Status);
};

// The library to use, searched in this order: in the process, ONEHOP_PMIX (a path, or "none"), beside the launcher and
// its MPI library, in the packages of the Python environment, the system's search path. Null if there is none; `tried`
// receives the searched places.
[[nodiscard]] const Library* find_library(std::vector<std::string>& tried);

}  // namespace onehop::detail::pmix
