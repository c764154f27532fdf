// What the launcher and `onehop doctor` need to know, and programs do not.
#include "python/bindings/bindings.h"
#include "src/group/control_memory.h"
#include "src/mpi/mpi.h"

using onehop::detail::ControlMemory;

namespace {

struct Control {
  std::optional<ControlMemory> memory;
  std::string path;
};

}  // namespace

void bind_launch(nb::module_& module) {
  nb::class_<Control>(module, "Control", "The memory through which the ranks of a launch find each other.")
      .def_ro("path", &Control::path, "Where ranks find it, as long as it is open.")
      .def(
          "tell_ended",
          [](Control& self, int rank) {
            if (self.memory) self.memory->tell_ended(rank);
          },
          "rank"_a, "Tells the other ranks that this one's process has ended.")
      .def("close", [](Control& self) { self.memory.reset(); }, "Gives the memory back.");
  module.def(
      "create_control",
      [](int ranks) {
        ControlMemory memory = ControlMemory::create(ranks);
        std::string path = memory.path();
        return Control{std::move(memory), std::move(path)};
      },
      "ranks"_a);
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
      "The MPI library that is, or would be, used. Does not initialise it.");
}
