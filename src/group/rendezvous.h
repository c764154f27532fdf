// Lets ranks of one machine that torchrun or srun started find each other by a key that only they know.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "src/group/bootstrap.h"

namespace onehop::detail {

// Rank 0 makes control memory and hands its descriptor to the others over an abstract Unix socket named after `key`
// (and ONEHOP_MEETING_KEY), without a file. Both ends check the other's user and close connections of other users. A
// connection becomes a rank only by its greeting, so a stranger takes no rank's place. Throws Error if the ranks do not
// meet within a minute (or ONEHOP_TIMEOUT), or if another user holds the name; Mismatch if the rank is taken or the
// launch has another number of ranks.
//
// `processes` are those of the ranks, for ranks that a program has made known to each other, as QuickReduce does. Then
// PeerLost names the rank whose process has ended before it has joined, and the limit raises Timeout.
[[nodiscard]] std::unique_ptr<Bootstrap> meet(const std::string& key, int rank, int ranks,
                                              const std::vector<pid_t>& processes = {});

}  // namespace onehop::detail
