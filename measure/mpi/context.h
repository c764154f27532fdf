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

  explicit MpiCalls(const detail::MpiLibrary& library) {
    library.bind(send, "MPI_Send");
    library.bind(recv, "MPI_Recv");
    library.bind(sendrecv, "MPI_Sendrecv");
    library.bind(wait, "MPI_Wait");
    library.bind(waitall, "MPI_Waitall");
    library.bind(request_free, "MPI_Request_free");
    library.bind(send_init, "MPI_Send_init");
    library.bind(recv_init, "MPI_Recv_init");
    library.bind(start, "MPI_Start");
    library.bind(startall, "MPI_Startall");
    library.bind(allreduce, "MPI_Allreduce");
    library.bind(reduce_scatter_block, "MPI_Reduce_scatter_block");
    library.bind(allgather, "MPI_Allgather");
    library.bind(bcast, "MPI_Bcast");
    library.bind(alltoall, "MPI_Alltoall");
    library.bind(barrier, "MPI_Barrier");
    library.bind(win_allocate, "MPI_Win_allocate");
    library.bind(win_allocate_shared, "MPI_Win_allocate_shared");
    library.bind(win_free, "MPI_Win_free");
    library.bind(win_lock_all, "MPI_Win_lock_all");
    library.bind(win_unlock_all, "MPI_Win_unlock_all");
    library.bind(win_flush, "MPI_Win_flush");
    library.bind(win_sync, "MPI_Win_sync");
    library.bind(put, "MPI_Put");
    library.bind(iprobe, "MPI_Iprobe");
    library.bind(dist_graph_create_adjacent, "MPI_Dist_graph_create_adjacent");
    library.bind(neighbor_alltoallw, "MPI_Neighbor_alltoallw");
    library.bind(type_contiguous, "MPI_Type_contiguous");
    library.bind(type_create_hvector, "MPI_Type_create_hvector");
    library.bind(type_create_hindexed_block, "MPI_Type_create_hindexed_block");
    library.bind(type_commit, "MPI_Type_commit");
    library.bind(type_free, "MPI_Type_free");
    // New in MPI 4.
    allreduce_init = reinterpret_cast<decltype(allreduce_init)>(library.find("MPI_Allreduce_init"));
  }

  int (*send)(const void*, int, Datatype, int, int, Comm);
  int (*recv)(void*, int, Datatype, int, int, Comm, Status*);
  int (*sendrecv)(const void*, int, Datatype, int, int, void*, int, Datatype, int, int, Comm, Status*);
  int (*wait)(Request*, Status*);
  int (*waitall)(int, Request*, Status*);
  int (*request_free)(Request*);
  int (*send_init)(const void*, int, Datatype, int, int, Comm, Request*);
  int (*recv_init)(void*, int, Datatype, int, int, Comm, Request*);
  int (*start)(Request*);
  int (*startall)(int, Request*);
  int (*allreduce)(const void*, void*, int, Datatype, typename Abi::Op, Comm);
  int (*allreduce_init)(const void*, void*, int, Datatype, typename Abi::Op, Comm, Info,
                        Request*);  // null in older libraries
  int (*reduce_scatter_block)(const void*, void*, int, Datatype, typename Abi::Op, Comm);
  int (*allgather)(const void*, int, Datatype, void*, int, Datatype, Comm);
  int (*bcast)(void*, int, Datatype, int, Comm);
  int (*alltoall)(const void*, int, Datatype, void*, int, Datatype, Comm);
  int (*barrier)(Comm);
  int (*win_allocate)(Aint, int, Info, Comm, void*, Win*);
  int (*win_allocate_shared)(Aint, int, Info, Comm, void*, Win*);
  int (*win_free)(Win*);
  int (*win_lock_all)(int, Win);
  int (*win_unlock_all)(Win);
  int (*win_flush)(int, Win);
  int (*win_sync)(Win);
  int (*put)(const void*, int, Datatype, int, Aint, int, Datatype, Win);
  int (*iprobe)(int, int, Comm, int*, Status*);
  int (*dist_graph_create_adjacent)(Comm, int, const int*, const int*, int, const int*, const int*, Info, int, Comm*);
  int (*neighbor_alltoallw)(const void*, const int*, const Aint*, const Datatype*, void*, const int*, const Aint*,
                            const Datatype*, Comm);
  int (*type_contiguous)(int, Datatype, Datatype*);
  int (*type_create_hvector)(int, int, Aint, Datatype, Datatype*);
  int (*type_create_hindexed_block)(int, int, const Aint*, Datatype, Datatype*);
  int (*type_commit)(Datatype*);
  int (*type_free)(Datatype*);
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
  void start_all() const {
    context_.check(context_.mpi.startall(static_cast<int>(list.size()), data()), "MPI_Startall");
  }
  void wait_all() const {
    context_.check(context_.mpi.waitall(static_cast<int>(list.size()), data(), context_.ignore()), "MPI_Waitall");
  }
  [[nodiscard]] Request* data() const noexcept { return const_cast<Request*>(list.data()); }

  std::vector<Request> list;

 private:
  const MpiContext<Abi>& context_;
};

// Returns the initialised MPI to compare with; nothing, and a reason, on every rank if a rank has none or if the ranks
// of MPI_COMM_WORLD are not those of the group in the same order. Collective.
[[nodiscard]] std::optional<detail::AnyMpi> mpi_to_compete_with(const Group& group, std::string* why_not = nullptr);

// Returns the candidates that add(api, candidates) makes for that MPI; none without one. Collective.
template <class Peer, class Add>
[[nodiscard]] std::vector<std::unique_ptr<Peer>> mpi_peers(const Group& group, Add add) {
  std::vector<std::unique_ptr<Peer>> peers;
  if (const auto mpi = mpi_to_compete_with(group)) {
    std::visit([&](const auto* api) { add(*api, peers); }, *mpi);
  }
  return peers;
}

// The same for candidates that work between two ranks. Throws BadInput for another number of ranks.
template <class Peer, class Add>
[[nodiscard]] std::vector<std::unique_ptr<Peer>> mpi_peers_of_two(const Group& group, Add add) {
  if (group.size() != 2)
    throw BadInput("this comparison with MPI needs 2 ranks, found " + std::to_string(group.size()));
  return mpi_peers<Peer>(group, add);
}

}  // namespace onehop::measure
