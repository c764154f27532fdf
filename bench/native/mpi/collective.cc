// Plain MPI: reduce-scatter, all-gather, broadcast and all-to-all of float32.
#include "bench/native/mpi/peers.h"
#include "measure/mpi/context.h"

namespace onehop::bench {
namespace {

template <class Abi>
int run(const MpiContext<Abi>& c, CollectiveKind kind, std::span<float> source, std::span<float> result) {
  const auto number = c.api.handles.float32;
  const int sent = static_cast<int>(source.size());
  switch (kind) {
    case CollectiveKind::reduce_scatter:
      return c.mpi.reduce_scatter_block(source.data(), result.data(), static_cast<int>(result.size()), number,
                                        c.api.handles.sum, c.comm);
    case CollectiveKind::allgather:
      return c.mpi.allgather(source.data(), sent, number, result.data(), sent, number, c.comm);
    case CollectiveKind::all_to_all:
      return c.mpi.alltoall(source.data(), sent / c.size, number, result.data(), sent / c.size, number, c.comm);
    case CollectiveKind::broadcast:
      break;
  }
  return c.mpi.bcast(source.data(), sent, number, 0, c.comm);
}

}  // namespace

const char* mpi_name(CollectiveKind kind) {
  constexpr const char* names[] = {"MPI_Reduce_scatter_block", "MPI_Allgather", "MPI_Bcast", "MPI_Alltoall"};
  return names[static_cast<std::size_t>(kind)];
}

std::function<void(std::span<float>, std::span<float>)> mpi_collective(const Group& group, CollectiveKind kind) {
  return with_mpi<std::function<void(std::span<float>, std::span<float>)>>(
      group, [&]<class Abi>(const MpiApi<Abi>& api) {
        return
            [context = std::make_shared<MpiContext<Abi>>(api), kind](std::span<float> source, std::span<float> result) {
              context->check(run(*context, kind, source, result), mpi_name(kind));
            };
      });
}

}  // namespace onehop::bench
