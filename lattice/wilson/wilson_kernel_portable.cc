// The kernels for every processor, with vectors of 16 bytes: x86-64 and 64-bit ARM always have them; elsewhere the
// compiler splits them.
#include "lattice/wilson/wilson_kernel.h"

#define ONEHOP_SIMD_NAMESPACE portable
#define ONEHOP_SIMD_BYTES 16
#include "lattice/wilson/wilson_kernel_simd.h"
