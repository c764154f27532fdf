#include "src/mpi/api.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

namespace onehop::detail {

template <class Abi>
MpiApi<Abi>::MpiApi(const MpiLibrary& from)
    : library(from), handles(Abi::handles([&from](const char* name) { return from.object(name); })) {
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
  from.bind(comm_set_errhandler, "MPI_Comm_set_errhandler");
  from.bind(comm_get_attr, "MPI_Comm_get_attr");
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
void MpiApi<Abi>::fail(const char* what, int code) const {
  constexpr std::size_t longest = 8192;  // more than any library's MPI_MAX_ERROR_STRING
  std::string text(longest, '\0');
  int length = 0;
  int kind = 0;
  {
    const auto guard = lock();
    if (error_class(code, &kind) != 0) kind = 0;
    if (error_string(code, text.data(), &length) != 0) length = 0;
  }
  text.resize(static_cast<std::size_t>(length));
  const std::string why = std::string(what) + " failed: " + (text.empty() ? "error " + std::to_string(code) : text) +
                          " (" + library.version() + ", " + library.path() + ")";
  if (std::ranges::find(Abi::lost_peer, kind) != Abi::lost_peer.end()) {
    throw PeerLost(-1, "another rank has ended, as MPI reports: " + why + "; see the output of the other ranks");
  }
  throw Error(why);
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
void MpiApi<Abi>::learn_thread_level() const {
  int level = 0;
  call("MPI_Query_thread", query_thread, &level);
  serialised_.store(level < Abi::thread_multiple, std::memory_order_relaxed);
  any_thread_.store(level >= Abi::thread_serialized, std::memory_order_relaxed);
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
