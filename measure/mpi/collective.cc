// Plain MPI: collective operations on float32.
#include "measure/mpi/context.h"
#include "measure/mpi/peers.h"

namespace onehop::measure {
namespace {

template <class Abi>
struct Operation {
  explicit Operation(const MpiApi<Abi>& api) : context(api), requests(context) {}
  MpiContext<Abi> context;
  MpiRequests<Abi> requests;
};

template <class Abi>
std::function<void()> made_of(const MpiApi<Abi>& api, CollectiveKind kind, std::span<float> source,
                              std::span<float> result, bool persistent) {
  const auto made = std::make_shared<Operation<Abi>>(api);
  const auto& mpi = made->context.mpi;
  const auto of = [&](auto function, auto... arguments) -> std::function<void()> {
    return [made, function, name = mpi_name(kind), arguments...] {
      made->context.check(function(arguments..., made->context.comm), name);
    };
  };
  const auto number = api.handles.float32;
  const auto sum = api.handles.sum;
  const int sent = static_cast<int>(source.size());
  const int received = static_cast<int>(result.size());
  float* const to = result.data();
  const void* const from = kind == CollectiveKind::allreduce && source.data() == to ? Abi::in_place() : source.data();
  if (persistent) {
    if (mpi.allreduce_init == nullptr) return {};
    made->context.check(mpi.allreduce_init(from, to, received, number, sum, made->context.comm, api.handles.info_null,
                                           made->requests.add()),
                        "MPI_Allreduce_init");
    return [made] {
      made->requests.start(0, 1);
      made->requests.wait(0, 1);
    };
  }
  switch (kind) {
    case CollectiveKind::reduce_scatter:
      return of(mpi.reduce_scatter_block, from, to, received, number, sum);
    case CollectiveKind::allgather:
      return of(mpi.allgather, from, sent, number, to, sent, number);
    case CollectiveKind::broadcast:
      return of(mpi.bcast, to, received, number, 0);
    case CollectiveKind::all_to_all:
      return of(mpi.alltoall, from, sent / made->context.size, number, to, sent / made->context.size, number);
    case CollectiveKind::allreduce:
      break;
  }
  return of(mpi.allreduce, from, to, received, number, sum);
}

}  // namespace

const char* mpi_name(CollectiveKind kind) {
  constexpr const char* names[] = {"MPI_Reduce_scatter_block", "MPI_Allgather", "MPI_Bcast", "MPI_Alltoall",
                                   "MPI_Allreduce"};
  return names[static_cast<std::size_t>(kind)];
}

std::function<void()> mpi_collective(const Group& group, CollectiveKind kind, std::span<float> source,
                                     std::span<float> result, bool persistent) {
  return with_mpi<std::function<void()>>(
      group, [&](const auto& api) { return made_of(api, kind, source, result, persistent); });
}

}  // namespace onehop::measure
