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
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
