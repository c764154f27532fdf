// The kernels for every processor, with vectors of 16 bytes: x86-64 and 64-bit ARM always have them; elsewhere the
// compiler splits them.
#include "lattice/wilson/wilson_kernel.h"

#define ONEHOP_SIMD_NAMESPACE portable
#define ONEHOP_SIMD_BYTES 16
#include "lattice/wilson/wilson_kernel_simd.h"

const WilsonKernels<float>* float_wilson(int lanes) {
  if (lanes == 4) return &kernels<float, 4>;
  if (lanes == 2) return &kernels<float, 2>;
  if (lanes == 1) return &kernels<float, 1>;
  return nullptr;
}
const WilsonKernels<double>* double_wilson(int lanes) {
  if (lanes == 2) return &kernels<double, 2>;
  if (lanes == 1) return &kernels<double, 1>;
  return nullptr;
}

}  // namespace onehop::lattice::portable
