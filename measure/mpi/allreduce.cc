// Plain MPI: a sum of float32 over all ranks.
#include "measure/mpi/context.h"
#include "measure/mpi/peers.h"

namespace onehop::measure {
namespace {

template <class Abi>
struct Persistent {
  MpiContext<Abi> context;
  MpiRequests<Abi> requests;

  explicit Persistent(const MpiApi<Abi>& api) : context(api), requests(context) {}
  void run() const {
    context.check(context.mpi.start(requests.data()), "MPI_Start");
    context.check(context.mpi.wait(requests.data(), context.ignore()), "MPI_Wait");
  }
};

}  // namespace

std::function<void()> mpi_allreduce(const Group& group, std::span<const float> from, std::span<float> to,
                                    bool persistent) {
  return with_mpi<std::function<void()>>(group, [&]<class Abi>(const MpiApi<Abi>& api) -> std::function<void()> {
    const auto made = std::make_shared<Persistent<Abi>>(api);
    const auto& c = made->context;
    const void* const source = from.data() == to.data() ? Abi::in_place() : from.data();
    const auto call = [&c, source, to](const auto& function, auto... more) {
      const int count = static_cast<int>(to.size());
      return function(source, to.data(), count, c.api.handles.float32, c.api.handles.sum, c.comm, more...);
    };
    if (!persistent) return [made, call] { made->context.check(call(made->context.mpi.allreduce), "MPI_Allreduce"); };
    if (c.mpi.allreduce_init == nullptr) return {};
    c.check(call(c.mpi.allreduce_init, c.api.handles.info_null, made->requests.add()), "MPI_Allreduce_init");
    return [made] { made->run(); };
  });
}

}  // namespace onehop::measure
