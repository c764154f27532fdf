// Common parts of the MPI candidates: further MPI functions, a communicator for each candidate, and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "measure/buffer.h"
#include "onehop/error.h"
#include "onehop/group.h"
#include "src/mpi/api.h"

namespace onehop::measure {

using detail::MpiApi;

template <class Abi>
struct MpiCalls {
  using Comm = typename Abi::Comm;
  using Datatype = typename Abi::Datatype;
  using Info = typename Abi::Info;
  using Request = typename Abi::Request;
  using Status = typename Abi::Status;
  using Win = typename Abi::Win;
  using Aint = std::intptr_t;

  explicit MpiCalls(const detail::MpiLibrary& from) : library(from) {}
  const detail::MpiLibrary& library;

  int (*send)(const void*, int, Datatype, int, int, Comm) = of("MPI_Send");
  int (*recv)(void*, int, Datatype, int, int, Comm, Status*) = of("MPI_Recv");
  int (*sendrecv)(const void*, int, Datatype, int, int, void*, int, Datatype, int, int, Comm,
                  Status*) = of("MPI_Sendrecv");
  int (*wait)(Request*, Status*) = of("MPI_Wait");
  int (*waitall)(int, Request*, Status*) = of("MPI_Waitall");
  int (*request_free)(Request*) = of("MPI_Request_free");
  int (*send_init)(const void*, int, Datatype, int, int, Comm, Request*) = of("MPI_Send_init");
  int (*recv_init)(void*, int, Datatype, int, int, Comm, Request*) = of("MPI_Recv_init");
  int (*start)(Request*) = of("MPI_Start");
  int (*startall)(int, Request*) = of("MPI_Startall");
  int (*allreduce)(const void*, void*, int, Datatype, typename Abi::Op, Comm) = of("MPI_Allreduce");
  int (*reduce_scatter_block)(const void*, void*, int, Datatype, typename Abi::Op,
                              Comm) = of("MPI_Reduce_scatter_block");
  int (*allgather)(const void*, int, Datatype, void*, int, Datatype, Comm) = of("MPI_Allgather");
  int (*bcast)(void*, int, Datatype, int, Comm) = of("MPI_Bcast");
  int (*alltoall)(const void*, int, Datatype, void*, int, Datatype, Comm) = of("MPI_Alltoall");
  int (*barrier)(Comm) = of("MPI_Barrier");
  int (*win_allocate)(Aint, int, Info, Comm, void*, Win*) = of("MPI_Win_allocate");
  int (*win_allocate_shared)(Aint, int, Info, Comm, void*, Win*) = of("MPI_Win_allocate_shared");
  int (*win_free)(Win*) = of("MPI_Win_free");
  int (*win_lock_all)(int, Win) = of("MPI_Win_lock_all");
  int (*win_unlock_all)(Win) = of("MPI_Win_unlock_all");
  int (*win_flush)(int, Win) = of("MPI_Win_flush");
  int (*win_sync)(Win) = of("MPI_Win_sync");
  int (*put)(const void*, int, Datatype, int, Aint, int, Datatype, Win) = of("MPI_Put");
  int (*iprobe)(int, int, Comm, int*, Status*) = of("MPI_Iprobe");
  int (*dist_graph_create_adjacent)(Comm, int, const int*, const int*, int, const int*, const int*, Info, int,
                                    Comm*) = of("MPI_Dist_graph_create_adjacent");
  int (*neighbor_alltoallw)(const void*, const int*, const Aint*, const Datatype*, void*, const int*, const Aint*,
                            const Datatype*, Comm) = of("MPI_Neighbor_alltoallw");
  int (*type_contiguous)(int, Datatype, Datatype*) = of("MPI_Type_contiguous");
  int (*type_create_hvector)(int, int, Aint, Datatype, Datatype*) = of("MPI_Type_create_hvector");
  int (*type_create_hindexed_block)(int, int, const Aint*, Datatype, Datatype*) = of("MPI_Type_create_hindexed_block");
  int (*type_commit)(Datatype*) = of("MPI_Type_commit");
  int (*type_free)(Datatype*) = of("MPI_Type_free");
  // New in MPI 4: null in older libraries.
  int (*allreduce_init)(const void*, void*, int, Datatype, typename Abi::Op, Comm, Info,
                        Request*) = reinterpret_cast<decltype(allreduce_init)>(library.find("MPI_Allreduce_init"));

 private:
  // A function of the library, whatever its type. Throws Error if there is none.
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor)
      return reinterpret_cast<Function*>(address);
    }
  };
  [[nodiscard]] Symbol of(const char* name) const { return {library.symbol(name)}; }
};

// A communicator for one candidate, so that its posted receives do not take other candidates' messages.
template <class Abi>
class MpiContext {
 public:
  explicit MpiContext(const MpiApi<Abi>& with)
      : api(with), mpi(with.library), comm(with.duplicate(with.handles.comm_world)), byte(with.handles.byte) {
    api.call("MPI_Comm_rank", api.comm_rank, comm, &rank);
    api.call("MPI_Comm_size", api.comm_size, comm, &size);
    peer = 1 - rank;
  }
  MpiContext(const MpiContext&) = delete;
  MpiContext& operator=(const MpiContext&) = delete;
  ~MpiContext() { api.free_quietly(comm); }

  // Inline and minimal, because only the MPI call itself should cost time.
  void check(int code, const char* what) const {
    if (code != 0) [[unlikely]]
      api.fail(what, code);
  }
  [[nodiscard]] bool running() const { return api.library.running(); }
  static typename Abi::Status* ignore() noexcept { return Abi::status_ignore(); }

  const MpiApi<Abi>& api;
  const MpiCalls<Abi> mpi;
  typename Abi::Comm comm;
  typename Abi::Datatype byte;
  int rank = 0;
  int size = 1;
  int peer = 0;  // the other of two ranks
};

// Persistent or ordinary requests of one candidate.
template <class Abi>
class MpiRequests {
 public:
  using Request = typename Abi::Request;
  explicit MpiRequests(const MpiContext<Abi>& context) : context_(context) {}
  MpiRequests(const MpiRequests&) = delete;
  MpiRequests& operator=(const MpiRequests&) = delete;
  ~MpiRequests() { clear(); }

  // Frees persistent requests. None may be active.
  void clear() noexcept {
    if (context_.running()) {
      for (Request& request : list) {
        if (request != context_.api.handles.request_null) static_cast<void>(context_.mpi.request_free(&request));
      }
    }
    list.clear();
  }
  // A new request that is null.
  [[nodiscard]] Request* add() { return &list.emplace_back(context_.api.handles.request_null); }
  // `count` requests from number `first` on; of one request, by the shorter call.
  void start(std::size_t first, std::size_t count) const {
    if (count == 1) return context_.check(context_.mpi.start(data() + first), "MPI_Start");
    if (count > 1) context_.check(context_.mpi.startall(static_cast<int>(count), data() + first), "MPI_Startall");
  }
  void wait(std::size_t first, std::size_t count) const {
    if (count == 1) return context_.check(context_.mpi.wait(data() + first, context_.ignore()), "MPI_Wait");
    context_.check(context_.mpi.waitall(static_cast<int>(count), data() + first, context_.ignore()), "MPI_Waitall");
  }
  [[nodiscard]] Request* data() const noexcept { return const_cast<Request*>(list.data()); }

  std::vector<Request> list;

 private:
  const MpiContext<Abi>& context_;
};

// Returns the initialised MPI to compare with; nothing, and a reason, on every rank if a rank has none or if the ranks
// of MPI_COMM_WORLD are not those of the group in the same order. Collective.
[[nodiscard]] std::optional<detail::AnyMpi> mpi_to_compete_with(const Group& group, std::string* why_not = nullptr);

// Returns what make(api) makes for that MPI; a default value without one. Collective.
template <class Result, class Make>
[[nodiscard]] Result with_mpi(const Group& group, Make make) {
  const auto mpi = mpi_to_compete_with(group);
  if (!mpi) return {};
  return std::visit([&](const auto* api) -> Result { return make(*api); }, *mpi);
}

}  // namespace onehop::measure
