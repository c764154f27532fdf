// The kernels for every processor, with vectors of 16 bytes: x86-64 and 64-bit ARM always have them; elsewhere the
// compiler splits them.
#include "lattice/su3/su3_kernels.h"

#define ONEHOP_SIMD_NAMESPACE portable
#define ONEHOP_SIMD_BYTES 16
#include "lattice/su3/su3_kernels_simd.h"
