// `onehop bench solver`: the staggered operator with other parts inside than onehop's.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "onehop/lattice/staggered.h"

namespace onehop::bench {

// "MPI": the same solver and kernels, faces packed, sent by Isend and Irecv and unpacked, sums by MPI_Allreduce; "scalar": one site at a
// time, without the processor's vector instructions in the hopping term. The remaining as the constructor of Staggered. Collective. Throws
// BadInput for another name, Error where there is no MPI.
[[nodiscard]] lattice::Staggered staggered_way(std::string_view name, const Group& group,
                                               std::vector<std::int64_t> extents, std::vector<int> grid,
                                               std::span<const std::complex<double>> fat_links,
                                               std::span<const std::complex<double>> long_links, int threads);

}  // namespace onehop::bench
