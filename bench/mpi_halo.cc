// All MPI contestants of the halo.
#include "mpi_halo.h"

namespace onehop::bench {

std::vector<std::unique_ptr<HaloPeer>> mpi_halo_peers(const Group& group) {
  std::vector<std::unique_ptr<HaloPeer>> peers;
  if (const auto mpi = mpi_to_compete_with(group)) {
    std::visit(
        [&peers](const auto* api) {
          add_packed_halos(*api, peers);
          add_derived_halos(*api, peers);
        },
        *mpi);
  }
  return peers;
}

}  // namespace onehop::bench
