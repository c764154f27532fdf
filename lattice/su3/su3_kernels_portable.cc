// For every processor: vectors of 16 bytes, which x86-64 and ARM have always, and which the compiler takes apart elsewhere.
#include "lattice/su3/su3_kernels.h"

#define ONEHOP_SIMD_NAMESPACE portable
#define ONEHOP_SIMD_BYTES 16
#include "lattice/su3/su3_kernels_simd.h"
