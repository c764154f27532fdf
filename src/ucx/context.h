// The context of UCX in this process: which networks there are.
#pragma once

#include <string>

#include "src/ucx/library.h"

namespace onehop::detail::ucx {

// Throws Error with UCX's words if `status` is an error. `step` says what was tried.
void check(const Library& library, Status status, const std::string& step);

// A context of this process: made with the first group that needs it, and kept.
struct ProcessContext {
  const Library& library;
  Context* context = nullptr;
  bool only_tcp = true;          // the networks of this machine are ordinary ones
  bool writes_remotely = false;  // whether a network of this machine writes into the memory of other machines
  std::string networks;          // its transports and devices, "tcp/eth0, rc_mlx5/mlx5_0:1"
};
// The context on one network device, "eth0", or on all that UCX may use. Throws Error if UCX is absent or cannot start,
// BadInput for wrong variables.
[[nodiscard]] const ProcessContext& process_context(const std::string& device = {});

}  // namespace onehop::detail::ucx
