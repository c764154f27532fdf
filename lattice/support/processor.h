// SIMD vectors for kernels that are compiled once per instruction set. The including source defines
// ONEHOP_SIMD_NAMESPACE and ONEHOP_SIMD_BYTES, the length of a vector. Everything has internal linkage, so that code
// for one instruction set cannot replace code for another. Include standard headers first, before the instruction set
// is switched on.
namespace onehop::lattice::ONEHOP_SIMD_NAMESPACE {
namespace {

#define ONEHOP_INLINE inline __attribute__((always_inline))
// Makes the compiler assume that this vector is used and changed here, so that it stays in a register.
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

// The number of lanes that a vector register holds, at most `Lanes`.
template <class T, int Lanes>
inline constexpr int width =
    Lanes < ONEHOP_SIMD_BYTES / static_cast<int>(sizeof(T)) ? Lanes : ONEHOP_SIMD_BYTES / static_cast<int>(sizeof(T));

// One real number for each of W sites.
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

// A non-temporal store. `to` must be aligned to the size of the vector.
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
// Makes non-temporal stores visible to other threads before later stores.
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
