// SIMD vectors (simd.h) for a source that is compiled once per instruction set, with what depends on the instruction
// set: non-temporal stores and registers. The source defines ONEHOP_SIMD_BYTES, the length of a vector register, and
// includes this header once, after it has included the standard headers and switched the instruction set on. Everything
// has internal linkage, so that code for one instruction set cannot replace code for another.
//
// Used by quantum/kernels/kernels_simd.h and lattice/support/processor.h.
#include "src/base/simd.h"

#if defined(__SANITIZE_ADDRESS__)
#define ONEHOP_INLINE \
  inline  // checks make the functions long, and inlining all of them takes twice the time to compile
#else
#define ONEHOP_INLINE inline __attribute__((always_inline))
#endif

// The constraint of an asm operand that is a vector, read and written, in a register if the architecture is known.
#if defined(__x86_64__) && ONEHOP_SIMD_BYTES == 64
#define ONEHOP_VECTOR_OPERAND "+v"
#elif defined(__x86_64__)
#define ONEHOP_VECTOR_OPERAND "+x"
#elif defined(__aarch64__)
#define ONEHOP_VECTOR_OPERAND "+w"
#else
#define ONEHOP_VECTOR_OPERAND "+m"
#endif
// Makes the compiler assume that this vector is used and changed here, so that it stays in a register.
#define ONEHOP_KEEP(vector) asm volatile("" : ONEHOP_VECTOR_OPERAND(vector))

namespace onehop::simd {
namespace {

// Vector registers of the instruction set.
#if (defined(__x86_64__) && ONEHOP_SIMD_BYTES == 64) || defined(__aarch64__)
inline constexpr int registers = 32;
#else
inline constexpr int registers = 16;
#endif

// A load that the compiler cannot repeat. Otherwise it loads a value again to save a register, which is slower in loops
// that the load unit limits.
template <class V>
ONEHOP_INLINE V load_once(const void* from) {
  V v = load<V>(from);
#if defined(__x86_64__) || defined(__aarch64__)
  asm("" : ONEHOP_VECTOR_OPERAND(v));
#endif
  return v;
}

// A non-temporal store of a vector of T. `to` must be aligned to the size of the vector.
template <class T, class V>
ONEHOP_INLINE void stream(T* to, const V& v) {
#if defined(__clang__)
  __builtin_nontemporal_store(v, reinterpret_cast<V*>(to));
#else
#if defined(__x86_64__) && ONEHOP_SIMD_BYTES >= 64
  if constexpr (sizeof(V) == 64 && sizeof(T) == 4) return __builtin_ia32_movntps512(to, v);
  if constexpr (sizeof(V) == 64 && sizeof(T) == 8) return __builtin_ia32_movntpd512(to, v);
#endif
#if defined(__x86_64__) && ONEHOP_SIMD_BYTES >= 32
  if constexpr (sizeof(V) == 32 && sizeof(T) == 4) return __builtin_ia32_movntps256(to, v);
  if constexpr (sizeof(V) == 32 && sizeof(T) == 8) return __builtin_ia32_movntpd256(to, v);
#endif
  store(to, v);
#endif
}
// Makes non-temporal stores visible to other threads before later stores.
ONEHOP_INLINE void finish_streaming() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace
}  // namespace onehop::simd
