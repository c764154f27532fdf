#include "lattice/wilson/wilson_kernel.h"

#if defined(__x86_64__)
// Only the code below may use these instructions, and it includes no standard header: otherwise the linker could pick
// an inline function compiled here for the whole program, which would then crash on older processors.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define ONEHOP_SIMD_NAMESPACE avx2
#define ONEHOP_SIMD_BYTES 32
#include "lattice/wilson/wilson_kernel_simd.h"

const WilsonKernels<float>* float_wilson(int lanes) {
  if (lanes == 8) return &kernels<float, 8>;
  if (lanes == 4) return &kernels<float, 4>;
  if (lanes == 2) return &kernels<float, 2>;
  if (lanes == 1) return &kernels<float, 1>;
  return nullptr;
}
const WilsonKernels<double>* double_wilson(int lanes) {
  if (lanes == 4) return &kernels<double, 4>;
  if (lanes == 2) return &kernels<double, 2>;
  if (lanes == 1) return &kernels<double, 1>;
  return nullptr;
}

}  // namespace onehop::lattice::avx2
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
