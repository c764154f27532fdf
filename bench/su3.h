// `onehop bench su3`: the algebra of SU(3) for arrays of sites, against the same written for one site, and the processor's limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/rounds.h"

namespace onehop::bench {

enum class Su3Operation { vectors, matrices, exponentials, reunitarise };
[[nodiscard]] Su3Operation su3_operation_from_string(const std::string& name);

// Collective; each rank has arrays of its own of so many sites, a multiple of 16. Beside the loops for this processor those for others, as
// a peer the code for one site, and of `vectors` two limits: its multiply-adds alone, or its loads and stores alone, whichever takes
// longer here. Samples are µs of one pass over all sites.
[[nodiscard]] std::vector<Samples> su3(const Group& group, Su3Operation operation, bool single, std::int64_t sites,
                                       const Effort& effort);

}  // namespace onehop::bench
