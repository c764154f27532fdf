// SIMD vectors in the compiler's vector types. Vectors may be longer than a register; the compiler then splits them.
//
// Used by the loops of lattice (lattice/support/best_loop.h and processor.h, lattice/geometry/site_loop.h), by the
// kernels of quantum (quantum/kernels/kernels_simd.h), by poisson/poisson_kernels.cc, collectives/reduce.cc and
// src/codec/encoded_sum.cc. Other loops use the intrinsics of x86 instead: those of the codec (src/codec/codec_avx2.cc,
// codec_avx512.cc), of the stores into other ranks' memory (src/channel/store.cc) and of the exchanges of plans
// (src/plan/direct/run_exchange.cc, line_exchange.cc).
//
// Each function is inlined into its caller and compiled for the instruction set of the caller. Sources whose callers
// choose their instruction set with an attribute need -Wno-psabi, which is safe because no vector is ever passed in a
// call. A source that is compiled once per instruction set includes simd_target.h instead, after it has switched the
// instruction set on. This header includes no other, so that no inline function of the standard library is compiled
// for that instruction set.
#pragma once

namespace onehop::simd {

template <class T, int Count>
struct VectorOf {
  typedef T Type __attribute__((vector_size(Count * sizeof(T))));
};
template <class T, int Count>
struct LanesOf : VectorOf<T, Count> {};
template <class T>
struct LanesOf<T, 1> {
  using Type = T;
};

// A vector of `Count` numbers, a power of two.
template <class T, int Count>
using Vector = typename VectorOf<T, Count>::Type;
// The same, but a plain number for a single lane.
template <class T, int Count>
using Lanes = typename LanesOf<T, Count>::Type;

// The result of comparing two V: for vectors, a signed integer of the same size in each lane, 0 or -1; for numbers, a
// bool.
template <class V>
using Mask = decltype(V{} < V{});

// Loads and stores a vector or a number at an address that need not be aligned.
template <class V>
[[gnu::always_inline]] inline V load(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
// The same for numbers of lanes that shuffle() reads. clang would load each of them by itself otherwise, and then no
// longer see that shuffle() is one instruction.
template <class V>
[[gnu::always_inline]] inline V load_source(const void* from) {
#if defined(__clang__)
  struct [[gnu::packed]] Unaligned {
    V v;
  };
  return static_cast<const volatile Unaligned*>(from)->v;
#else
  return load<V>(from);
#endif
}
template <class V>
[[gnu::always_inline]] inline void store(void* to, const V& v) {
  __builtin_memcpy(to, &v, sizeof v);
}

// The number x in all lanes.
template <class V, class T>
[[gnu::always_inline]] inline V all(T x) {
  return V{} + x;
}

// Converts the number in each lane. To has as many lanes as From.
template <class To, class From>
[[gnu::always_inline]] inline To convert(const From& v) {
  if constexpr (requires { v[0]; }) {
    return __builtin_convertvector(v, To);
  } else {
    return static_cast<To>(v);
  }
}

// Lane i of the result is lane source[i] of v.
template <class V>
[[gnu::always_inline]] inline V shuffle(const V& v, const Mask<V>& source) {
#if defined(__clang__)  // has no shuffle by a mask that is known at run time only
  V result;
  for (unsigned i = 0; i < sizeof(V) / sizeof(v[0]); ++i) result[i] = v[source[i]];
  return result;
#else
  return __builtin_shuffle(v, source);
#endif
}

// Lane i of the result is lane source[i] of v and w, one behind the other.
template <class V>
[[gnu::always_inline]] inline V shuffle(const V& v, const V& w, const Mask<V>& source) {
#if defined(__clang__)
  constexpr unsigned lanes = sizeof(V) / sizeof(v[0]);
  V result;
  for (unsigned i = 0; i < lanes; ++i) {
    const auto from = static_cast<unsigned>(source[i]);
    result[i] = from < lanes ? v[from] : w[from - lanes];
  }
  return result;
#else
  return __builtin_shuffle(v, w, source);
#endif
}

}  // namespace onehop::simd
