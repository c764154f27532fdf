// `onehop bench su3`: SU(3) algebra for arrays of sites, against code for one site and the processor's speed of light.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/native/measure.h"

namespace onehop::bench {

enum class Su3Operation { vectors, matrices, exponentials, reunitarise };
[[nodiscard]] Su3Operation su3_operation_from_string(const std::string& name);

// Times one pass over all sites, in µs. Each rank has its own arrays of `sites` sites, a multiple of 16. The candidates
// are the loops for this processor and for others; the peer is code for one site. The speed of light of `vectors` is
// the slower of the multiply-adds alone and the loads and stores alone. Collective.
[[nodiscard]] std::vector<Samples> su3(const Group& group, Su3Operation operation, bool single, std::int64_t sites,
                                       const Effort& effort);

}  // namespace onehop::bench
