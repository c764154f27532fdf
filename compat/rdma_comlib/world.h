// The group of a program that uses rdma_comlib: from the first call that needs it until rdma_comlib_finalize.
#pragma once

#include <vector>

#include "onehop/group.h"

namespace onehop::compat::rdma_comlib {

// Joins the group, also once more after close_world(). Collective.
void open_world();
// Throws BadInput if the group was closed already.
void close_world();

// Throws BadInput after close_world().
void check_open();
// The group, joined if it has not been. Throws like check_open().
Group group();

// The ranks of this host that have joined, this rank included; only this rank if it has not joined.
std::vector<int> ranks_of_host();
int own_rank();

}  // namespace onehop::compat::rdma_comlib
