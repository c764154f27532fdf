#include "lattice/staggered/dslash_kernel_loops.h"

namespace onehop::lattice::detail {

template HopKernel<std::int16_t, float> hop_kernel(int, int, bool);

}  // namespace onehop::lattice::detail
