// MPI_COMM_WORLD for the benchmarks.
#include "mpi/mpi.h"
#include "mpi_context.h"
#include "mpi_peers.h"

namespace onehop::bench {
namespace {

template <class Abi>
class World final : public MpiWorld {
 public:
  explicit World(const MpiApi<Abi>& api) : context_(api) {}
  int rank() const override { return context_.rank; }
  int size() const override { return context_.size; }
  double allreduce_sum(double value) override {
    const auto& c = context_;
    double sum = 0;
    c.check(c.mpi.allreduce(&value, &sum, 1, c.api.handles.float64, c.api.handles.sum, c.comm), "MPI_Allreduce");
    return sum;
  }
  void barrier() override { context_.check(context_.mpi.barrier(context_.comm), "MPI_Barrier"); }
  std::string version() const override {
    const std::string& whole = context_.api.library.version();
    return whole.substr(0, whole.find(','));
  }

 private:
  MpiContext<Abi> context_;
};

}  // namespace

std::optional<detail::AnyMpi> mpi_to_compete_with(int ranks, std::string* why_not) {
  const auto give_reason = [why_not](std::string reason) {
    if (why_not != nullptr) *why_not = std::move(reason);
    return std::nullopt;
  };
  // Without a launcher MPI would start as one rank, or not at all: then the processor's time is better spent otherwise.
  const detail::MpiLauncher launcher = detail::mpi_launcher();
  if (launcher.kind == detail::MpiLauncher::Kind::none && !detail::mpi_is_running()) {
    return give_reason("this program was not started by an MPI launcher");
  }
  try {
    const detail::AnyMpi mpi = detail::running_mpi();
    const int size = std::visit(
        [](const auto* api) {
          int found = 0;
          api->call("MPI_Comm_size", api->comm_size, api->handles.comm_world, &found);
          return found;
        },
        mpi);
    if (ranks != 0 && size != ranks) {
      return give_reason("MPI runs " + std::to_string(size) + " rank(s), this comparison needs " +
                         std::to_string(ranks));
    }
    return mpi;
  } catch (const Error& error) {
    return give_reason(error.what());
  }
}

std::unique_ptr<MpiWorld> MpiWorld::make() {
  return std::visit(
      []<class Abi>(const MpiApi<Abi>* api) -> std::unique_ptr<MpiWorld> { return std::make_unique<World<Abi>>(*api); },
      detail::running_mpi());
}

}  // namespace onehop::bench
