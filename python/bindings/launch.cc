// Functions for the launcher and `onehop doctor`.
#include "onehop/error.h"
#include "python/bindings/bindings.h"
#include "src/group/control_memory.h"
#include "src/mpi/library_folder.h"
#include "src/mpi/mpi.h"
#include "src/ucx/context.h"

using onehop::detail::ControlMemory;

namespace {

struct Control {
  std::optional<ControlMemory> memory;
  std::string path;
};

}  // namespace

void bind_launch(nb::module_& module) {
  nb::class_<Control>(module, "Control", "The shared memory through which the ranks of a launch find each other.")
      .def_ro("path", &Control::path, "Path under which ranks open the memory, valid until `close`.")
      .def(
          "tell_ended",
          [](Control& self, int rank) {
            if (self.memory) self.memory->tell_ended(rank);
          },
          "rank"_a, "Tell the other ranks that the process of this rank has ended.")
      .def("close", [](Control& self) { self.memory.reset(); }, "Release the memory.");
  module.def(
      "create_control",
      [](int ranks) {
        ControlMemory memory = ControlMemory::create(ranks);
        std::string path = memory.path();
        return Control{std::move(memory), std::move(path)};
      },
      "ranks"_a, "Create the control memory for a launch of `ranks` ranks.");
  module.def(
      "ucx_library",
      []() {
        nb::dict result;
        std::vector<std::string> tried;
        result["path"] = "";
        try {
          if (const auto* library = onehop::detail::ucx::find_library(tried)) {
            result["path"] = library->path;
            result["version"] = library->version;
            const auto& context = onehop::detail::ucx::process_context();
            result["networks"] = context.networks;
            result["mode"] = context.writes_remotely ? "puts" : "active messages";
          }
        } catch (const onehop::Error& error) {
          tried.emplace_back(error.what());
        }
        result["tried"] = tried;
        return result;
      },
      nb::sig("def ucx_library() -> dict[str, typing.Any]"),
      "Describe the UCX library that onehop uses or would use, and start it: path, version, networks, mode, tried.");
  module.def(
      "mpi_library",
      []() {
        const auto info = onehop::detail::mpi_library_info();
        nb::dict result;
        result["path"] = info.path;
        result["abi"] = info.abi;
        result["version"] = info.version;
        result["tried"] = info.tried;
        return result;
      },
      nb::sig("def mpi_library() -> dict[str, typing.Any]"),
      "Describe the MPI library that onehop uses or would use: path, abi, version, tried. Does not initialise it.");
  module.def(
      "library_beside",
      [](const std::string& folder, const std::vector<std::string>& names) {
        return onehop::detail::library_beside(folder, names);
      },
      nb::arg("folder"), nb::arg("names"),
      "Return the first library of these names that may be loaded from the folders beside a program in a folder, or "
      "''.");
}
