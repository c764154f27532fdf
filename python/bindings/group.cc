#include "onehop/group.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>

#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "onehop/error.h"
#include "onehop/memory.h"
#include "onehop/status.h"
#include "python/bindings/bindings.h"
#include "src/base/memory_left.h"
#include "src/group/group_state.h"
#include "src/group/rendezvous.h"
#include "src/group/require_same.h"

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

// Throws the error that Python has raised; a PeerLost as that of C++, so that the group tells its peers.
[[noreturn]] void rethrow(const nb::python_error& error) {
  if (!error.matches(nb::module_::import_("onehop.error").attr("PeerLost"))) throw;
  int rank = -1;
  static_cast<void>(nb::try_cast(nb::getattr(error.value(), "rank", nb::none()), rank));
  throw onehop::PeerLost(rank, nb::str(error.value()).c_str());
}

// Keeps a Python callable, from any thread.
std::shared_ptr<nb::callable> held_callable(const nb::callable& callable) {
  return {new nb::callable(callable), [](nb::callable* p) {
            const nb::gil_scoped_acquire gil;
            delete p;
          }};
}

// Wraps a Python callable as an all-gather. The group calls it with the GIL released, from any thread, and may outlive
// the call that made the group.
onehop::AllGather as_allgather(const nb::callable& callable) {
  return [held = held_callable(callable)](std::span<const std::byte> mine) {
    const nb::gil_scoped_acquire gil;
    nb::object result;
    try {
      result = (*held)(nb::bytes(mine.data(), mine.size()));
    } catch (const nb::python_error& error) {
      rethrow(error);
    }
    std::vector<std::vector<std::byte>> all;
    for (const nb::handle item : result) {
      const auto bytes = nb::cast<nb::bytes>(item);
      const auto span = as_span(bytes);
      all.emplace_back(span.begin(), span.end());
    }
    return Gathered(all);
  };
}

// Wraps a Python callable that returns all-gathers.
onehop::AllGatherMaker as_maker(const nb::callable& callable) {
  return [held = held_callable(callable)](const std::string& name, int rank, int size, std::function<int()> gone) {
    const nb::gil_scoped_acquire gil;
    const nb::object gone_rank = nb::cpp_function([gone = std::move(gone)] {
      const nb::gil_scoped_release released;
      return gone();
    });
    return as_allgather(nb::cast<nb::callable>((*held)(name, rank, size, gone_rank)));
  };
}

// Threads whose waits must end. The GIL protects it.
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

// Ends a long wait on Ctrl-C and other signals, and for threads that interrupt_thread() names.
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

nb::list status_of_process(int process) {
  nb::list ranks;
  for (const onehop::RankStatus& one : onehop::status_of_process(process)) {
    nb::list waits;
    for (const onehop::WaitStatus& wait : one.waits) {
      nb::dict entry;
      entry["peer"] = wait.peer;
      entry["peer_is"] =
          nb::str(nb::bytes(wait.peer_is.data(), wait.peer_is.size()).attr("decode")("utf-8", "replace"));
      entry["what"] = nb::str(nb::bytes(wait.what.data(), wait.what.size()).attr("decode")("utf-8", "replace"));
      entry["seconds"] = wait.seconds;
      waits.append(entry);
    }
    nb::dict rank;
    rank["rank"] = one.rank;
    rank["size"] = one.size;
    rank["group"] = one.group;
    rank["steps"] = one.steps;
    rank["left"] = one.left;
    rank["reported_lost"] = one.reported_lost;
    rank["waits"] = waits;
    nb::list down;
    for (const std::string& name : one.down)
      down.append(nb::str(nb::bytes(name.data(), name.size()).attr("decode")("utf-8", "replace")));
    rank["interfaces_down"] = down;
    ranks.append(rank);
  }
  return ranks;
}

void bind_status(nb::module_& module) {
  module.def("status_of_process", &status_of_process, "process"_a,
             nb::sig("def status_of_process(process: int) -> list[dict[str, typing.Any]]"),
             "Return what each group of a process of this machine waits for; see `onehop status`.");
}

}  // namespace

void bind_group(nb::module_& module) {
  bind_status(module);
  using release = nb::call_guard<nb::gil_scoped_release>;
  onehop::set_interrupt_check(check_signals);
  module.def("interrupt_thread", &interrupt_thread, "thread"_a, "interrupted"_a = true,
             "Make every wait of the thread with this `threading.get_ident()` raise Error, or with `interrupted` False "
             "allow it to wait again.");
  nb::class_<Group>(module, "Group", "A group of ranks; see `onehop.Group`.")
      .def(nb::init<const Group&>(), "group"_a, "Make another handle of a group.")
      .def_static(
          "world", &Group::world, release(),
          "Return the group of all ranks of the launch, or of this process alone without a launcher. The first call "
          "is collective. Raises Error if this rank cannot reach the others.")
      .def_static("close_world", &Group::close_world,
                  "Drop the reference that `world` holds, so that the group closes with its last other user.")
      .def_static("process_is_ending", &Group::process_is_ending,
                  "Announce the end of the process. Groups that close later count as closed in order only if the exit "
                  "status is 0.")
      .def_static("alone", &Group::alone, "Return a group of this process alone.")
      .def_static(
          "from_allgather",
          [](int rank, int size, const nb::callable& allgather) {
            onehop::AllGather function = as_allgather(allgather);
            const nb::gil_scoped_release released;
            return Group::from_allgather(rank, size, std::move(function));
          },
          nb::sig("def from_allgather(rank: int, size: int, allgather: "
                  "collections.abc.Callable[[bytes], collections.abc.Sequence[bytes]]) -> Group"),
          "rank"_a, "size"_a, "allgather"_a,
          "Make a group from a function that gathers the bytes of all ranks in rank order. Collective.")
      .def_static(
          "from_allgathers",
          [](int rank, int size, const nb::callable& maker) {
            onehop::AllGatherMaker function = as_maker(maker);
            const nb::gil_scoped_release released;
            return Group::from_allgather(rank, size, function);
          },
          nb::sig("def from_allgathers(rank: int, size: int, maker: collections.abc.Callable[[str, int, int, "
                  "collections.abc.Callable[[], int]], collections.abc.Callable[[bytes], "
                  "collections.abc.Sequence[bytes]]]) -> Group"),
          "rank"_a, "size"_a, "maker"_a,
          "Make a group from a function that makes the all-gathers of the group and of its parts by their names, ranks "
          "and sizes, and by a function that returns a rank of the part that is gone, or -1. Collective.")
      .def_static(
          "meet",
          [](const std::string& key, int rank, int size, const std::vector<int>& processes) {
            return Group(
                onehop::detail::make_group(rank, size, "allgather", onehop::detail::meet(key, rank, size, processes)));
          },
          "key"_a, "rank"_a, "size"_a, "processes"_a, release(),
          "Make a group of processes of this machine that share a secret key and know each other's process numbers. "
          "Collective.")
      .def_static(
          "from_mpi_handle",
          [](std::uintptr_t address) { return Group::from_mpi(reinterpret_cast<const void*>(address)); }, "address"_a,
          release(),
          "Make a group from the communicator whose MPI_Comm handle lies at this address. The communicator is "
          "duplicated. Collective.")
      .def_prop_ro("rank", &Group::rank, "Number of this rank, from 0.")
      .def_prop_ro("size", &Group::size, "Number of ranks.")
      .def_prop_ro("origin", &Group::origin,
                   "How the group was made: launcher, mpi, torchrun, srun, alone, allgather or split.")
      .def_prop_ro("valid", &Group::valid, "False for the result of `split` on a rank that joins no group.")
      .def_prop_rw(
          "timeout", &Group::timeout, &Group::set_timeout,
          "Time limit in seconds of every wait in this group; 0: none. Lost peers are noticed without a limit.")
      .def("shares_memory", &Group::shares_memory, "rank"_a,
           "Return whether a rank runs on this machine and shares memory with this rank.")
      .def_prop_ro("local_ranks", &Group::local_ranks,
                   "Ranks that share memory with this rank, itself included, in ascending order.")
      .def_prop_ro("gone_rank", &Group::gone_rank,
                   "A rank that has died, closed its group or cannot be reached, as far as this rank knows without "
                   "waiting; -1: none.")
      .def("abort", &Group::abort,
           "Give the group up, from any thread: waits of this rank in it raise Error, and waits of the other ranks of "
           "this machine raise PeerLost, which names this rank. The group cannot be used afterwards.")
      .def("barrier", &Group::barrier, release(), "Wait until all ranks have called it.")
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
          nb::sig("def allgather(self, mine: bytes) -> list[bytes]"), "mine"_a,
          "Return the bytes of all ranks in rank order. Lengths may differ. Collective.")
      .def("split", &Group::split, "color"_a, "key"_a, release(),
           "Split the group as MPI_Comm_split does: ranks with the same color form a group, ordered by key. A rank "
           "with a negative color joins none. Collective.")
      .def("allocate", &allocate, "bytes"_a,
           "Allocate zeroed memory that the other ranks of this machine can access, as an array of uint8. Not "
           "collective. Raises Error if there is too little memory.");
  module.def(
      "require_same",
      [](const Group& group, const std::string& function,
         const std::vector<std::pair<std::string, std::string>>& arguments) {
        std::vector<onehop::detail::Argument> all;
        for (const auto& [name, text] : arguments) all.emplace_back(name, text);
        onehop::detail::require_same(group, function, all);
      },
      "group"_a, "function"_a, "arguments"_a, release(),
      "Raise Mismatch on every rank unless all call a function with the same names and texts of arguments. "
      "Collective.");
  module.def("allgathers_begun", &onehop::detail::allgathers_begun,
             "Return the all-gathers that this thread has begun in groups of several ranks.");
  module.def(
      "refuse", [](const Group& group, const std::string& text) { onehop::detail::refuse(group, text); }, "group"_a,
      "text"_a, release(),
      "For a rank that leaves a collective function before its first all-gather: take part in that one, so that the "
      "other ranks raise Mismatch with this text.");
  module.def(
      "require_memory", &onehop::require_memory, "group"_a, "bytes"_a, "what"_a, "advice"_a, release(),
      "Raise Error on all ranks if the ranks of a machine or control group are together about to take more memory "
      "than it has left: `bytes` on this rank. `what` names the purpose, and `advice` ends the message. Collective.");
  module.def(
      "memory_left_to_control_groups",
      []() -> std::optional<std::int64_t> {
        const std::int64_t left = onehop::detail::memory_left().control_group;
        if (left >= std::int64_t{1} << 60) return std::nullopt;  // no limit; in version 1 it is a large number
        return left;
      },
      "Return the bytes that the control groups of this process still allow; None without a limit.");
}
