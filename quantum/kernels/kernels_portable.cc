// For every processor: vectors of 16 bytes, which x86-64 and ARM have always, and which the compiler takes apart
// elsewhere.
#include "quantum/kernels/kernels.h"

#define ONEHOP_SIMD_NAMESPACE portable
#define ONEHOP_SIMD_BYTES 16
#if defined(__x86_64__)  // without fused multiply-adds, and with 16 registers
#define ONEHOP_PREFER_DENSE false
#else
#define ONEHOP_PREFER_DENSE true
#endif
#include "quantum/kernels/kernels_simd.h"
