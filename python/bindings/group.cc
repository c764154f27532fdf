#include "onehop/group.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>

#include <cstring>
#include <memory>
#include <set>

#include "onehop/error.h"
#include "python/bindings/bindings.h"

using onehop::Gathered;
using onehop::Group;
using onehop::SharedArray;

namespace {

std::span<const std::byte> as_span(const nb::bytes& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

nb::list as_list(const Gathered& gathered) {
  nb::list list;
  for (const auto& bytes : gathered) list.append(nb::bytes(bytes.data(), bytes.size()));
  return list;
}

// A Python callable as an all-gather. The group calls it with the GIL released, from any thread, and may outlive the call
// that made it.
onehop::AllGather as_allgather(const nb::callable& callable) {
  const std::shared_ptr<nb::callable> held(new nb::callable(callable), [](nb::callable* p) {
    const nb::gil_scoped_acquire gil;
    delete p;
  });
  return [held](std::span<const std::byte> mine) {
    const nb::gil_scoped_acquire gil;
    const nb::object result = (*held)(nb::bytes(mine.data(), mine.size()));
    Gathered all;
    for (const nb::handle item : result) {
      const auto bytes = nb::cast<nb::bytes>(item);
      const auto span = as_span(bytes);
      all.emplace_back(span.begin(), span.end());
    }
    return all;
  };
}

// Threads whose waits are to end. Only looked at with the GIL held.
std::set<unsigned long>& interrupted_threads() {
  static std::set<unsigned long> threads;
  return threads;
}

void interrupt_thread(unsigned long thread, bool interrupted) {
  if (interrupted) {
    interrupted_threads().insert(thread);
  } else {
    interrupted_threads().erase(thread);
  }
}

// Ctrl-C and other signals, and interrupt_thread(), in long waits.
void check_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (!interrupted_threads().empty() && interrupted_threads().contains(PyThread_get_thread_ident())) {
    throw onehop::Error("a thread of this rank was told to stop waiting: the program ends, or has shut down the group");
  }
}

nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> allocate(const Group& group, std::int64_t bytes) {
  auto* held = new SharedArray(group.allocate(bytes));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<SharedArray*>(p); });
  const auto span = held->bytes();
  return {reinterpret_cast<std::uint8_t*>(span.data()), {span.size()}, owner};
}

}  // namespace

void bind_group(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  onehop::set_interrupt_check(check_signals);
  module.def("interrupt_thread", &interrupt_thread, "thread"_a, "interrupted"_a = true,
             "Ends every wait of the thread with this `threading.get_ident()` with an Error, until told otherwise.");
  nb::class_<Group>(module, "Group", "The ranks of a run.")
      .def(nb::init<const Group&>(), "group"_a)
      .def_static("world", &Group::world, release())
      .def_static("close_world", &Group::close_world)
      .def_static("process_is_ending", &Group::process_is_ending)
      .def_static("alone", &Group::alone)
      .def_static(
          "from_allgather",
          [](int rank, int size, const nb::callable& allgather) {
            onehop::AllGather function = as_allgather(allgather);
            const nb::gil_scoped_release released;
            return Group::from_allgather(rank, size, std::move(function));
          },
          nb::sig("def from_allgather(rank: int, size: int, allgather: "
                  "collections.abc.Callable[[bytes], collections.abc.Sequence[bytes]]) -> Group"),
          "rank"_a, "size"_a, "allgather"_a)
      .def_static(
          "from_mpi_handle",
          [](std::uintptr_t address) { return Group::from_mpi(reinterpret_cast<const void*>(address)); }, "address"_a,
          release())
      .def_prop_ro("rank", &Group::rank)
      .def_prop_ro("size", &Group::size)
      .def_prop_ro("origin", &Group::origin)
      .def_prop_ro("valid", &Group::valid)
      .def_prop_rw("timeout", &Group::timeout, &Group::set_timeout)
      .def("shares_memory", &Group::shares_memory, "rank"_a)
      .def_prop_ro("local_ranks", &Group::local_ranks)
      .def("barrier", &Group::barrier, release())
      .def(
          "allgather",
          [](const Group& group, const nb::bytes& mine) {
            Gathered all;
            {
              const nb::gil_scoped_release released;
              all = group.allgather(as_span(mine));
            }
            return as_list(all);
          },
          nb::sig("def allgather(self, mine: bytes) -> list[bytes]"), "mine"_a)
      .def("split", &Group::split, "color"_a, "key"_a, release())
      .def("allocate", &allocate, "bytes"_a);
}
