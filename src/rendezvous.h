// Ranks of one machine that a foreign launcher started (torchrun, srun) find each other by a key that only they know.
#pragma once

#include <memory>
#include <string>

#include "bootstrap.h"

namespace onehop::detail {

// Rank 0 makes control memory and hands its path to the others over an abstract Unix socket named after `key`: no file.
// Throws Error when the ranks do not come together within a minute (or ONEHOP_TIMEOUT).
[[nodiscard]] std::unique_ptr<Bootstrap> meet(const std::string& key, int rank, int ranks);

}  // namespace onehop::detail
