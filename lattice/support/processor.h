// Vectors of numbers for kernels that are compiled once for every kind of processor. Included by sources that say which: they define
// ONEHOP_SIMD_NAMESPACE and ONEHOP_SIMD_BYTES, the length of a vector. All is internal to the source that includes it, so that nothing
// that is compiled for one processor reaches another; whoever includes this has included the standard library's headers before.
namespace onehop::lattice::ONEHOP_SIMD_NAMESPACE {
namespace {

#define ONEHOP_INLINE inline __attribute__((always_inline))
// Makes the compiler believe that this vector is used and changed here.
#if defined(__x86_64__) && ONEHOP_SIMD_BYTES == 64
#define ONEHOP_KEEP(vector) asm volatile("" : "+v"(vector))
#elif defined(__x86_64__)
#define ONEHOP_KEEP(vector) asm volatile("" : "+x"(vector))
#elif defined(__aarch64__)
#define ONEHOP_KEEP(vector) asm volatile("" : "+w"(vector))
#else
#define ONEHOP_KEEP(vector) asm volatile("" : "+m"(vector))
#endif

template <class T, int W>
struct Simd {
  typedef T Type __attribute__((vector_size(W * sizeof(T))));
};
template <>
struct Simd<double, 1> {
  typedef double Type;
};
template <>
struct Simd<float, 1> {
  typedef float Type;
};
template <class T>
struct Whole {};
template <>
struct Whole<float> {
  typedef int Type;
};
template <>
struct Whole<double> {
  typedef long long Type;
};

// How many of a group of so many lanes the processor does at once.
template <class T, int Lanes>
inline constexpr int width =
    Lanes < ONEHOP_SIMD_BYTES / static_cast<int>(sizeof(T)) ? Lanes : ONEHOP_SIMD_BYTES / static_cast<int>(sizeof(T));

// Numbers of W sites.
template <class T, int W>
struct Real {
  typename Simd<T, W>::Type v;

  friend ONEHOP_INLINE Real operator+(const Real& a, const Real& b) { return {a.v + b.v}; }
  friend ONEHOP_INLINE Real operator-(const Real& a, const Real& b) { return {a.v - b.v}; }
  friend ONEHOP_INLINE Real operator*(const Real& a, const Real& b) { return {a.v * b.v}; }
  friend ONEHOP_INLINE Real operator-(const Real& a) { return {-a.v}; }
  friend ONEHOP_INLINE Real operator+(const Real& a, int b) { return {a.v + static_cast<T>(b)}; }
};

template <int W, class T>
ONEHOP_INLINE Real<T, W> load(const T* from) {
  Real<T, W> r;
  __builtin_memcpy(&r.v, from, sizeof r.v);
  return r;
}
template <int W, class T>
ONEHOP_INLINE void store(T* to, const Real<T, W>& r) {
  __builtin_memcpy(to, &r.v, sizeof r.v);
}
template <int W, class T>
ONEHOP_INLINE Real<T, W> all(T x) {
  return {typename Simd<T, W>::Type{} + x};
}

// Past the caches, to an address that is a multiple of the vector's size.
template <int W, class T>
ONEHOP_INLINE void stream(T* to, const Real<T, W>& r) {
#if defined(__clang__)
  __builtin_nontemporal_store(r.v, reinterpret_cast<typename Simd<T, W>::Type*>(to));
#else
#if defined(__x86_64__) && ONEHOP_SIMD_BYTES >= 64
  if constexpr (sizeof(r.v) == 64 && sizeof(T) == 4) return __builtin_ia32_movntps512(to, r.v);
  if constexpr (sizeof(r.v) == 64 && sizeof(T) == 8) return __builtin_ia32_movntpd512(to, r.v);
#endif
#if defined(__x86_64__) && ONEHOP_SIMD_BYTES >= 32
  if constexpr (sizeof(r.v) == 32 && sizeof(T) == 4) return __builtin_ia32_movntps256(to, r.v);
  if constexpr (sizeof(r.v) == 32 && sizeof(T) == 8) return __builtin_ia32_movntpd256(to, r.v);
#endif
  store(to, r);
#endif
}
// What was streamed is visible to other threads after this.
ONEHOP_INLINE void finish_streaming() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

template <class T, int W>
struct Complex {
  Real<T, W> re;
  Real<T, W> im;

  friend ONEHOP_INLINE Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
  friend ONEHOP_INLINE Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
  friend ONEHOP_INLINE Complex operator*(const Real<T, W>& s, const Complex& a) { return {s * a.re, s * a.im}; }
  friend ONEHOP_INLINE Complex conj(const Complex& a) { return {a.re, -a.im}; }
};

// Two products and sums each: sum += a * b, sum -= a * b, and for conj: sum += conj(a) * b.
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
