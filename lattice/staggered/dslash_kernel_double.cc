#include "lattice/staggered/dslash_kernel_loops.h"

namespace onehop::lattice::detail {

template DslashKernel<double, double> dslash_kernel(int, int, bool);

}  // namespace onehop::lattice::detail
