// Real and complex numbers in SIMD vectors, one site in each lane, for kernels that are compiled once per instruction
// set. The including source defines ONEHOP_SIMD_NAMESPACE and what src/base/simd_target.h asks for. Everything has
// internal linkage, so that code for one instruction set cannot replace code for another.
#include "src/base/simd_target.h"

namespace onehop::lattice::ONEHOP_SIMD_NAMESPACE {
namespace {

// The number of lanes that a vector register holds, at most `Lanes`.
template <class T, int Lanes>
inline constexpr int width =
    Lanes < ONEHOP_SIMD_BYTES / static_cast<int>(sizeof(T)) ? Lanes : ONEHOP_SIMD_BYTES / static_cast<int>(sizeof(T));

// One real number for each of W sites.
template <class T, int W>
struct Real {
  simd::Lanes<T, W> v;

  friend ONEHOP_INLINE Real operator+(const Real& a, const Real& b) { return {a.v + b.v}; }
  friend ONEHOP_INLINE Real operator-(const Real& a, const Real& b) { return {a.v - b.v}; }
  friend ONEHOP_INLINE Real operator*(const Real& a, const Real& b) { return {a.v * b.v}; }
  friend ONEHOP_INLINE Real operator-(const Real& a) { return {-a.v}; }
  friend ONEHOP_INLINE Real operator+(const Real& a, int b) { return {a.v + static_cast<T>(b)}; }
};

template <int W, class T>
ONEHOP_INLINE Real<T, W> load(const T* from) {
  return {simd::load<simd::Lanes<T, W>>(from)};
}
template <int W, class T>
ONEHOP_INLINE void store(T* to, const Real<T, W>& r) {
  simd::store(to, r.v);
}
template <int W, class T>
ONEHOP_INLINE Real<T, W> all(T x) {
  return {simd::all<simd::Lanes<T, W>>(x)};
}
// A non-temporal store. `to` must be aligned to the size of the vector.
template <int W, class T>
ONEHOP_INLINE void stream(T* to, const Real<T, W>& r) {
  simd::stream(to, r.v);
}
using simd::finish_streaming;

template <class T, int W>
struct Complex {
  Real<T, W> re;
  Real<T, W> im;

  friend ONEHOP_INLINE Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
  friend ONEHOP_INLINE Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
  friend ONEHOP_INLINE Complex operator*(const Real<T, W>& s, const Complex& a) { return {s * a.re, s * a.im}; }
  friend ONEHOP_INLINE Complex conj(const Complex& a) { return {a.re, -a.im}; }
};

// sum += a * b, sum -= a * b, and sum += conj(a) * b, each as four multiply-adds.
template <class C>
ONEHOP_INLINE void add_product(C& sum, const C& a, const C& b) {
  sum.re = sum.re + a.re * b.re;
  sum.im = sum.im + a.re * b.im;
  sum.re = sum.re - a.im * b.im;
  sum.im = sum.im + a.im * b.re;
}
template <class C>
ONEHOP_INLINE void subtract_product(C& sum, const C& a, const C& b) {
  sum.re = sum.re - a.re * b.re;
  sum.im = sum.im - a.re * b.im;
  sum.re = sum.re + a.im * b.im;
  sum.im = sum.im - a.im * b.re;
}
template <class C>
ONEHOP_INLINE void add_conj_product(C& sum, const C& a, const C& b) {
  sum.re = sum.re + a.re * b.re;
  sum.im = sum.im + a.re * b.im;
  sum.re = sum.re + a.im * b.im;
  sum.im = sum.im - a.im * b.re;
}

}  // namespace
}  // namespace onehop::lattice::ONEHOP_SIMD_NAMESPACE
