// `onehop bench su3`: the algebra of SU(3) for arrays of sites, compared with code for one site and with the processor's speed of light.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/rounds.h"

namespace onehop::bench {

enum class Su3Operation { vectors, matrices, exponentials, reunitarise };
[[nodiscard]] Su3Operation su3_operation_from_string(const std::string& name);

// Times one pass over all sites, in µs. Each rank has arrays of its own of `sites` sites, a multiple of 16. The candidates are the loops
// for this processor and those for others; the peer is code for one site. The speed of light of `vectors` is the multiply-adds alone or
// the loads and stores alone, whichever takes longer here. Collective.
[[nodiscard]] std::vector<Samples> su3(const Group& group, Su3Operation operation, bool single, std::int64_t sites,
                                       const Effort& effort);

}  // namespace onehop::bench
