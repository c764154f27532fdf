// The group of all ranks that the MPI launcher started.
#pragma once

#include "onehop/channel.h"
#include "onehop/group.h"

namespace onehop::testing {

[[nodiscard]] const Group& world();

}  // namespace onehop::testing
