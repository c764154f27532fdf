#include "quantum/kernels/kernels.h"

#if defined(__x86_64__)
// Only what follows may use these instructions: nothing of the standard library is compiled with them, so that the
// linker cannot hand such code to the rest of the program.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define ONEHOP_SIMD_NAMESPACE avx2
#define ONEHOP_SIMD_BYTES 32
#define ONEHOP_PREFER_DENSE true
#include "quantum/kernels/kernels_simd.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
