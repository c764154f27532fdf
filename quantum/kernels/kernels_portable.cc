// The kernels for every processor, with vectors of 16 bytes: x86-64 and 64-bit ARM always have them; elsewhere the
// compiler splits them.
#include "quantum/kernels/kernels.h"

#define ONEHOP_SIMD_NAMESPACE portable
#define ONEHOP_SIMD_BYTES 16
#if defined(__x86_64__)  // without fused multiply-adds, and with 16 registers
#define ONEHOP_PREFER_DENSE false
#else
#define ONEHOP_PREFER_DENSE true
#endif
#include "quantum/kernels/kernels_simd.h"
