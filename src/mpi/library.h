// Finds and loads an MPI library.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace onehop::detail {

enum class MpiAbiKind { open_mpi, mpich, standard };

// One loaded MPI library. It is never unloaded: MPI libraries do not support that.
class MpiLibrary {
 public:
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& version() const noexcept { return version_; }  // first line of its own description
  [[nodiscard]] MpiAbiKind abi() const noexcept { return abi_; }

  // A function or object of the library; null if it has none of that name.
  [[nodiscard]] void* find(const char* name) const noexcept;
  // The same as the program would find it: the function of a preloaded tool (PMPI), or the copy of a data object that
  // the linker has made in the program, which the library then uses, too. Throws Error if there is none.
  [[nodiscard]] void* symbol(const char* name) const;
  // Sets a function pointer of any type.
  template <class Function>
  void bind(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }

  [[nodiscard]] bool initialised() const;
  [[nodiscard]] bool finalised() const;
  // Whether find_mpi_library loaded it into the process.
  [[nodiscard]] bool loaded_here() const noexcept { return loaded_here_; }
  [[nodiscard]] bool running() const { return initialised() && !finalised(); }

 private:
  friend class MpiSearch;
  void* handle_ = nullptr;
  std::string path_;
  std::string version_;
  MpiAbiKind abi_ = MpiAbiKind::mpich;
  bool loaded_here_ = false;
};

// The MPI libraries that this process has already mapped, running ones first. Loads nothing.
[[nodiscard]] std::vector<const MpiLibrary*> mpi_libraries_in_process();

// Returns the library to use, searched in this order: in the process; ONEHOP_MPI (a path, or "none"); the library of
// the launcher that started this process; beside the mpiexec on PATH; in the Python environment; the system's search
// path. Null if there is none. `tried`, if not null, receives the searched places.
[[nodiscard]] const MpiLibrary* find_mpi_library(std::vector<std::string>* tried = nullptr);

}  // namespace onehop::detail
