// `onehop bench solver`: the staggered operator with onehop's communication or kernels replaced by others.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "onehop/lattice/staggered.h"

namespace onehop::bench {

// Makes the operator by name. "MPI": the same solver and kernels, but faces are packed, sent by Isend and Irecv and
// unpacked, and sums use MPI_Allreduce. "scalar": the hopping term works on one site at a time, without SIMD. The other
// parameters are those of Staggered. Collective. Throws BadInput for another name, and Error if there is no MPI.
[[nodiscard]] lattice::Staggered staggered_variant(std::string_view name, const Group& group,
                                                   std::vector<std::int64_t> extents, std::vector<int> grid,
                                                   std::span<const std::complex<double>> fat_links,
                                                   std::span<const std::complex<double>> long_links, int threads);

}  // namespace onehop::bench
