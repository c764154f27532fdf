// Loads and stores, gamma matrices and half spinors for wilson_kernel_simd.h.
#include "lattice/support/processor.h"

namespace onehop::lattice::ONEHOP_SIMD_NAMESPACE {
namespace {

// Loads L numbers of type T, or L 16-bit integers and converts them to T.
template <class T, int L, class S>
ONEHOP_INLINE Real<T, L> load_real(const S* from) {
  if constexpr (sizeof(S) == sizeof(T)) {
    return load<L>(from);
  } else if constexpr (L == 1) {
    return {static_cast<T>(*from)};
  } else {
    const auto numbers = simd::load<simd::Vector<S, L>>(from);
    // The builtins are one instruction; g++ 12 splits __builtin_convertvector into halves of some eight instructions.
#if defined(__x86_64__) && !defined(__clang__) && ONEHOP_SIMD_BYTES >= 64
    if constexpr (L == 16)
      return {
          simd::convert<simd::Vector<T, L>>(__builtin_ia32_pmovsxwd512_mask(numbers, simd::Vector<int, L>{}, 0xffff))};
#endif
#if defined(__x86_64__) && !defined(__clang__) && ONEHOP_SIMD_BYTES >= 32
    if constexpr (L == 8) return {simd::convert<simd::Vector<T, L>>(__builtin_ia32_pmovsxwd256(numbers))};
#endif
    return {simd::convert<simd::Vector<T, L>>(numbers)};
  }
}
template <class T, int L, class S>
ONEHOP_INLINE Complex<T, L> load_number(const S* from, int number) {
  return {load_real<T, L>(from + 2 * number * L), load_real<T, L>(from + (2 * number + 1) * L)};
}
template <class T, int L>
ONEHOP_INLINE void store_number(T* to, int number, const Complex<T, L>& z) {
  store(to + 2 * number * L, z.re);
  store(to + (2 * number + 1) * L, z.im);
}
template <class T, int L>
ONEHOP_INLINE void put_number(T* to, int number, const Complex<T, L>& z, bool past_caches) {
  if (past_caches) {
    stream(to + 2 * number * L, z.re);
    stream(to + (2 * number + 1) * L, z.im);
  } else {
    store_number(to, number, z);
  }
}

// sum += t * i^Power * z
template <int Power, class T, int L>
ONEHOP_INLINE void add_turned(Complex<T, L>& sum, const Real<T, L>& t, const Complex<T, L>& z) {
  if constexpr (Power == 0) {
    sum.re = sum.re + t * z.re;
    sum.im = sum.im + t * z.im;
  } else if constexpr (Power == 1) {
    sum.re = sum.re - t * z.im;
    sum.im = sum.im + t * z.re;
  } else if constexpr (Power == 2) {
    sum.re = sum.re - t * z.re;
    sum.im = sum.im - t * z.im;
  } else {
    sum.re = sum.re + t * z.im;
    sum.im = sum.im - t * z.re;
  }
}

// The gamma matrices (docs/reference/lattice_wilson.md): row s of the upper half has i^power[s] in column partner[s];
// gamma is Hermitian.
template <int Direction>
struct Gamma;
template <>
struct Gamma<0> {
  static constexpr int partner[2] = {3, 2};
  static constexpr int power[2] = {1, 1};
};
template <>
struct Gamma<1> {
  static constexpr int partner[2] = {3, 2};
  static constexpr int power[2] = {2, 0};
};
template <>
struct Gamma<2> {
  static constexpr int partner[2] = {2, 3};
  static constexpr int power[2] = {1, 3};
};
template <>
struct Gamma<3> {
  static constexpr int partner[2] = {2, 3};
  static constexpr int power[2] = {0, 0};
};

template <class T, int L>
struct Half {
  Complex<T, L> s[2][3];  // spin, colour
};

// h = the upper half of (1 + t gamma) psi for t = 1 or -1. It determines the lower half.
template <int Direction, class T, int L>
ONEHOP_INLINE void project(Half<T, L>& h, const T* psi, const Real<T, L>& t) {
  using G = Gamma<Direction>;
#pragma GCC unroll 3
  for (int c = 0; c < 3; ++c) {
    h.s[0][c] = load_number<T, L>(psi, c);
    add_turned<G::power[0]>(h.s[0][c], t, load_number<T, L>(psi, 3 * G::partner[0] + c));
    h.s[1][c] = load_number<T, L>(psi, 3 + c);
    add_turned<G::power[1]>(h.s[1][c], t, load_number<T, L>(psi, 3 * G::partner[1] + c));
  }
}

template <class T, int L>
ONEHOP_INLINE Real<T, L> rotated(const Real<T, L>& r, const int* source) {
  if constexpr (L == 1) {
    return r;
  } else {
    const auto numbers = simd::load<simd::Vector<int, L>>(source);
    return {simd::shuffle(r.v, simd::convert<simd::Mask<simd::Vector<T, L>>>(numbers))};
  }
}

}  // namespace
}  // namespace onehop::lattice::ONEHOP_SIMD_NAMESPACE
