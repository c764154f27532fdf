#include "lattice/staggered/dslash_kernel_loops.h"

namespace onehop::lattice::detail {

template DslashKernel<float, float> dslash_kernel(int, int, bool);

}  // namespace onehop::lattice::detail
