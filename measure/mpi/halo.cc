// All MPI candidates of the halo.
#include "measure/mpi/halo.h"

#include "onehop/error.h"

namespace onehop::measure {

std::vector<std::unique_ptr<HaloPeer>> mpi_halo_peers(const Group& group) {
  return mpi_peers<HaloPeer>(group, [](const auto& api, auto& peers) {
    add_packed_halos(api, peers);
    add_derived_halos(api, peers);
  });
}

std::unique_ptr<HaloPeer> mpi_halo_peer(const Group& group, std::string_view name) {
  for (auto& peer : mpi_halo_peers(group)) {
    if (peer->name() == name) return std::move(peer);
  }
  throw Error("bench: expected the name of an MPI halo exchange, found " + std::string(name));
}

}  // namespace onehop::measure
