#include "src/mpi/api.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>

namespace onehop::detail {

template <class Abi>
MpiApi<Abi>::MpiApi(const MpiLibrary& from)
    : library(from), handles(Abi::handles([&from](const char* name) { return from.symbol(name); })) {
  from.bind(init_thread, "MPI_Init_thread");
  from.bind(finalize, "MPI_Finalize");
  from.bind(query_thread, "MPI_Query_thread");
  from.bind(error_string, "MPI_Error_string");
  from.bind(error_class, "MPI_Error_class");
  from.bind(comm_rank, "MPI_Comm_rank");
  from.bind(comm_size, "MPI_Comm_size");
  from.bind(comm_dup, "MPI_Comm_dup");
  from.bind(comm_split, "MPI_Comm_split");
  from.bind(comm_free, "MPI_Comm_free");
  from.bind(comm_test_inter, "MPI_Comm_test_inter");
  from.bind(comm_get_errhandler, "MPI_Comm_get_errhandler");
  from.bind(comm_set_errhandler, "MPI_Comm_set_errhandler");
  from.bind(errhandler_free, "MPI_Errhandler_free");
  from.bind(comm_get_attr, "MPI_Comm_get_attr");
  from.bind(comm_set_attr, "MPI_Comm_set_attr");
  from.bind(comm_create_keyval, "MPI_Comm_create_keyval");
  from.bind(iallgather, "MPI_Iallgather");
  from.bind(iallgatherv, "MPI_Iallgatherv");
  from.bind(isend, "MPI_Isend");
  from.bind(irecv, "MPI_Irecv");
  from.bind(test, "MPI_Test");
  from.bind(cancel, "MPI_Cancel");
  from.bind(iprobe, "MPI_Iprobe");
  from.bind(improbe, "MPI_Improbe");
  from.bind(imrecv, "MPI_Imrecv");
}

template <class Abi>
std::string MpiApi<Abi>::words_of(int code) const {
  constexpr std::size_t longest = 8192;  // more than any library's MPI_MAX_ERROR_STRING
  std::string text(longest, '\0');
  int length = 0;
  {
    const auto guard = lock();
    if (error_string(code, text.data(), &length) != 0) length = 0;
  }
  text.resize(static_cast<std::size_t>(length));
  return (text.empty() ? "error " + std::to_string(code) : text) + " (" + library.version() + ", " + library.path() +
         ")";
}

template <class Abi>
void MpiApi<Abi>::fail(const char* what, int code) const {
  int kind = 0;
  {
    const auto guard = lock();
    if (error_class(code, &kind) != 0) kind = 0;
  }
  const std::string why = std::string(what) + " failed: " + words_of(code);
  if (std::ranges::find(Abi::lost_peer, kind) != Abi::lost_peer.end()) {
    throw PeerLost(-1, "another rank has ended, as MPI reports: " + why + "; see the output of the other ranks");
  }
  throw Error(why);
}

template <class Abi>
void MpiApi<Abi>::throw_finalised(const char* what) const {
  throw Error(std::string("expected a running MPI for ") + what + ", but the program has called MPI_Finalize (" +
              library.path() +
              "): make groups, plans and channels, and run the first collective operation of each kind, before "
              "MPI_Finalize");
}

template <class Abi>
void MpiApi<Abi>::check_communicator(Comm comm) const {
  if (comm == handles.comm_null)
    throw BadInput("from_mpi: expected a communicator that this rank belongs to, found MPI_COMM_NULL");
  const std::string none = "from_mpi: expected a communicator, found a handle that is none, or was freed";
  if constexpr (std::is_same_v<Abi, OpenMpiAbi>) {
    // A handle is an address. MPI does not notice that the communicator there was freed, but its table of Fortran's
    // numbers has only those that exist.
    int (*number_of)(Comm) = nullptr;
    Comm (*of_number)(int) = nullptr;
    library.bind(number_of, "MPI_Comm_c2f");
    library.bind(of_number, "MPI_Comm_f2c");
    if (of_number(number_of(comm)) != comm) throw BadInput(none);
  }
  // MPI reports a wrong handle to the handler of one of these, which ends the program by default.
  const std::array bases{handles.comm_world, handles.comm_self};
  std::array<typename Abi::Errhandler, bases.size()> before{};
  for (std::size_t i = 0; i < bases.size(); ++i) {
    call("MPI_Comm_get_errhandler", comm_get_errhandler, bases[i], &before[i]);
    call("MPI_Comm_set_errhandler", comm_set_errhandler, bases[i], handles.errors_return);
  }
  int is_inter = 0;
  int code = 0;
  {
    const auto guard = lock();
    code = comm_test_inter(comm, &is_inter);
  }
  for (std::size_t i = 0; i < bases.size(); ++i) {
    call("MPI_Comm_set_errhandler", comm_set_errhandler, bases[i], before[i]);
    call("MPI_Errhandler_free", errhandler_free, &before[i]);
  }
  if (code != 0) throw BadInput(none + ": " + words_of(code));
  if (is_inter != 0) {
    throw BadInput(
        "from_mpi: expected a communicator of one group of ranks, found an intercommunicator, which joins two; merge "
        "them first (MPI_Intercomm_merge), or pass the communicator of the own side");
  }
}

template <class Abi>
typename Abi::Comm MpiApi<Abi>::duplicate(Comm comm) const {
  Comm copy = handles.comm_null;
  call("MPI_Comm_dup", comm_dup, comm, &copy);
  call("MPI_Comm_set_errhandler", comm_set_errhandler, copy, handles.errors_return);
  return copy;
}

template <class Abi>
void MpiApi<Abi>::free_quietly(Comm& comm) const noexcept {
  if (comm == handles.comm_null || !library.running()) return;
  const auto guard = lock();
  static_cast<void>(comm_free(&comm));
}

template <class Abi>
void MpiApi<Abi>::learn_state() const {
  int level = 0;
  call("MPI_Query_thread", query_thread, &level);
  serialised_.store(level < Abi::thread_multiple, std::memory_order_relaxed);
  any_thread_.store(level >= Abi::thread_serialized, std::memory_order_relaxed);
  // MPI_Finalize first deletes the attributes of MPI_COMM_SELF.
  std::call_once(watched_, [this] {
    const auto not_copied = [](Comm, int, void*, void*, void*, int* is_copied) { return *is_copied = 0; };
    const auto deleted = [](Comm, int, void* flag, void*) {
      static_cast<std::atomic<bool>*>(flag)->store(true, std::memory_order_relaxed);
      return 0;
    };
    int key = 0;
    call("MPI_Comm_create_keyval", comm_create_keyval, +not_copied, +deleted, &key, static_cast<void*>(nullptr));
    call("MPI_Comm_set_attr", comm_set_attr, handles.comm_self, key, static_cast<void*>(&finalised_));
  });
}

template struct MpiApi<OpenMpiAbi>;
template struct MpiApi<MpichAbi>;
template struct MpiApi<StandardAbi>;

AnyMpi mpi_api(const MpiLibrary& library) {
  static std::mutex mutex;
  static auto* bound = new std::map<const MpiLibrary*, AnyMpi>;  // outlasts groups of static lifetime
  const std::lock_guard guard(mutex);
  if (const auto found = bound->find(&library); found != bound->end()) return found->second;
  const auto make = [&library]() -> AnyMpi {
    if (library.abi() == MpiAbiKind::open_mpi) return new const MpiApi<OpenMpiAbi>(library);
    if (library.abi() == MpiAbiKind::standard) return new const MpiApi<StandardAbi>(library);
    return new const MpiApi<MpichAbi>(library);
  };
  return bound->emplace(&library, make()).first->second;
}

}  // namespace onehop::detail
