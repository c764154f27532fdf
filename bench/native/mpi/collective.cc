// Plain MPI: reduce-scatter, all-gather, broadcast and all-to-all of float32.
#include "bench/native/mpi/peers.h"
#include "measure/mpi/context.h"

namespace onehop::bench {
namespace {

template <class Abi>
class Blocking final : public CollectivePeer {
 public:
  explicit Blocking(const MpiApi<Abi>& api) : context_(api) {}
  const char* name(CollectiveKind kind) const override {
    switch (kind) {
      case CollectiveKind::reduce_scatter:
        return "MPI_Reduce_scatter_block";
      case CollectiveKind::allgather:
        return "MPI_Allgather";
      case CollectiveKind::all_to_all:
        return "MPI_Alltoall";
      case CollectiveKind::broadcast:
        break;
    }
    return "MPI_Bcast";
  }
  void run(CollectiveKind kind, std::span<float> source, std::span<float> result) override {
    const auto& c = context_;
    const auto number = c.api.handles.float32;
    const int block = static_cast<int>(source.size()) / c.size;
    c.check(
        [&] {
          switch (kind) {
            case CollectiveKind::reduce_scatter:
              return c.mpi.reduce_scatter_block(source.data(), result.data(), static_cast<int>(result.size()), number,
                                                c.api.handles.sum, c.comm);
            case CollectiveKind::allgather:
              return c.mpi.allgather(source.data(), static_cast<int>(source.size()), number, result.data(),
                                     static_cast<int>(source.size()), number, c.comm);
            case CollectiveKind::all_to_all:
              return c.mpi.alltoall(source.data(), block, number, result.data(), block, number, c.comm);
            case CollectiveKind::broadcast:
              break;
          }
          return c.mpi.bcast(source.data(), static_cast<int>(source.size()), number, 0, c.comm);
        }(),
        name(kind));
  }

 private:
  MpiContext<Abi> context_;
};

}  // namespace

std::vector<std::unique_ptr<CollectivePeer>> mpi_collective_peers(const Group& group) {
  return mpi_peers<CollectivePeer>(group, []<class Abi>(const MpiApi<Abi>& api, auto& peers) {
    peers.push_back(std::make_unique<Blocking<Abi>>(api));
  });
}

}  // namespace onehop::bench
