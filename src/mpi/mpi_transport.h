// The transport over MPI, for ranks on different machines. docs/design/protocol.md, "Other transports".
#pragma once

#include <memory>

#include "src/channel/transport/transport.h"
#include "src/mpi/api.h"

namespace onehop::detail {

// Takes ownership of the communicator `own`.
template <class Abi>
[[nodiscard]] std::unique_ptr<Transport> make_mpi_transport(const MpiApi<Abi>& api, typename Abi::Comm own);

extern template std::unique_ptr<Transport> make_mpi_transport(const MpiApi<OpenMpiAbi>&, OpenMpiAbi::Comm);
extern template std::unique_ptr<Transport> make_mpi_transport(const MpiApi<MpichAbi>&, MpichAbi::Comm);
extern template std::unique_ptr<Transport> make_mpi_transport(const MpiApi<StandardAbi>&, StandardAbi::Comm);

}  // namespace onehop::detail
