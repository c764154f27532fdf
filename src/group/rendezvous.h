// Ranks of one machine that a foreign launcher started (torchrun, srun) find each other by a key that only they know.
#pragma once

#include <memory>
#include <string>

#include "src/group/bootstrap.h"

namespace onehop::detail {

// Rank 0 makes control memory and hands its descriptor to the others over an abstract Unix socket named after `key`
// (and ONEHOP_MEETING_KEY): no file. Both ends look at the other's user, and only ranks of the same user meet;
// connections of anybody else are closed, and what a connection says decides which rank it is, so that one that is no
// rank takes nobody's place. Throws Error when the ranks do not come together within a minute (or ONEHOP_TIMEOUT), or
// when another user holds the name; Mismatch when the rank is taken or the launch has another number of ranks.
[[nodiscard]] std::unique_ptr<Bootstrap> meet(const std::string& key, int rank, int ranks);

}  // namespace onehop::detail
