// MPI_COMM_WORLD for the benchmarks.
#include "measure/mpi/context.h"
#include "measure/mpi/peers.h"
#include "src/base/text.h"
#include "src/mpi/mpi.h"

namespace onehop::measure {
namespace {

template <class Abi>
class World final : public MpiWorld {
 public:
  explicit World(const MpiApi<Abi>& api) : context_(api) {}
  void allreduce_sum(std::span<double> values) override {
    const auto& c = context_;
    c.check(c.mpi.allreduce(Abi::in_place(), values.data(), static_cast<int>(values.size()), c.api.handles.float64,
                            c.api.handles.sum, c.comm),
            "MPI_Allreduce");
  }
  void barrier() override { context_.check(context_.mpi.barrier(context_.comm), "MPI_Barrier"); }
  std::string version() const override {
    const std::string& whole = context_.api.library.version();
    return whole.substr(0, whole.find(','));
  }

 private:
  MpiContext<Abi> context_;
};

// Returns why this rank has no MPI to compare with; empty if it has one, and then sets `mpi`.
std::string why_not_here(const Group& group, std::optional<detail::AnyMpi>& mpi) {
  // Without a launcher, MPI would start with one rank or not at all, so it is not loaded.
  const detail::MpiLauncher launcher = detail::mpi_launcher();
  if (launcher.kind == detail::MpiLauncher::Kind::none && !detail::mpi_is_running()) {
    return "this program was not started by an MPI launcher";
  }
  try {
    mpi = detail::running_mpi();
    int rank = 0;
    int size = 0;
    std::visit(
        [&](const auto* api) {
          api->call("MPI_Comm_rank", api->comm_rank, api->handles.comm_world, &rank);
          api->call("MPI_Comm_size", api->comm_size, api->handles.comm_world, &size);
        },
        *mpi);
    if (size != group.size()) {
      return "MPI runs " + base::counted(size, "rank") + ", but this group has " + std::to_string(group.size());
    }
    if (rank != group.rank()) {
      return "rank " + std::to_string(group.rank()) + " of this group is rank " + std::to_string(rank) + " in MPI";
    }
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

std::optional<detail::AnyMpi> mpi_to_compete_with(const Group& group, std::string* why_not) {
  std::optional<detail::AnyMpi> mpi;
  const std::string mine = why_not_here(group, mpi);
  // All ranks or none, because the candidates are collective.
  for (const auto& bytes : group.allgather(std::as_bytes(std::span(mine)))) {
    if (bytes.empty()) continue;
    if (why_not != nullptr) why_not->assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return std::nullopt;
  }
  return mpi;
}

std::string why_no_mpi_peers(const Group& group) {
  std::string why;
  static_cast<void>(mpi_to_compete_with(group, &why));
  return why;
}

std::unique_ptr<MpiWorld> MpiWorld::make() {
  return std::visit(
      []<class Abi>(const MpiApi<Abi>* api) -> std::unique_ptr<MpiWorld> { return std::make_unique<World<Abi>>(*api); },
      detail::running_mpi());
}

}  // namespace onehop::measure
