// A bootstrap from a user's all-gather. Every result is checked before it is used.
#pragma once

#include <memory>

#include "onehop/group.h"
#include "src/group/bootstrap.h"

namespace onehop::detail {

// Its all-gather throws BadInput, saying what came back and what was expected, where `allgather` loses, adds, cuts,
// pads or mixes up contributions, or hands out those of an earlier step. What `allgather` throws comes out unchanged.
[[nodiscard]] std::unique_ptr<Bootstrap> make_user_bootstrap(int rank, int size, AllGather allgather);

}  // namespace onehop::detail
