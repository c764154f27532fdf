// All MPI candidates of the halo.
#include "measure/mpi/halo.h"

namespace onehop::measure {

std::vector<std::unique_ptr<HaloPeer>> mpi_halo_peers(const Group& group, std::string_view prefix) {
  std::vector<std::unique_ptr<HaloPeer>> peers;
  if (const auto mpi = mpi_to_compete_with(group)) {
    add_packed_halos(*mpi, prefix, peers);
    add_derived_halos(*mpi, prefix, peers);
  }
  return peers;
}

}  // namespace onehop::measure
