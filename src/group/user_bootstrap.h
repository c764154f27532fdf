// Makes a bootstrap from a user's all-gather. Every result is checked before it is used.
#pragma once

#include <memory>
#include <string>

#include "onehop/group.h"
#include "src/group/bootstrap.h"

namespace onehop::detail {

// Its all-gather throws BadInput, with the expected and the returned values, if `allgather` loses, adds, cuts, pads or
// reorders contributions, or returns those of an earlier step. Exceptions of `allgather` pass through unchanged.
[[nodiscard]] std::unique_ptr<Bootstrap> make_user_bootstrap(int rank, int size, AllGather allgather);
// The same for an all-gather that `maker` makes under this name. It can be split.
[[nodiscard]] std::unique_ptr<Bootstrap> make_user_bootstrap(int rank, int size, const AllGatherMaker& maker,
                                                             const std::string& name);

}  // namespace onehop::detail
