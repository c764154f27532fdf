// The mapper of the library SCOTCH, which is loaded at run time if this machine has it.
#pragma once

#include <string>

#include "machine/mapping/published.h"
#include "machine/mapping/traffic.h"

namespace onehop::detail {

struct ScotchResult {
  HostAt host_at;
  std::string reason;  // why there is no map; empty: there is one
};

[[nodiscard]] ScotchResult scotch_map(const Traffic& traffic, Sizes sizes);

}  // namespace onehop::detail
