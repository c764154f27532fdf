// The kernels of wilson_kernel.h. Each wilson_kernel_*.cc includes this header, for one instruction set.
#include "lattice/wilson/wilson_spinor_simd.h"

namespace onehop::lattice::ONEHOP_SIMD_NAMESPACE {
namespace {

// h = the projected neighbour of vector k on this side, with rotated lanes and the boundary sign where needed.
template <class T, int L, int Side>
ONEHOP_INLINE void gather(Half<T, L>& h, const WilsonDslash<T>& a, std::int64_t k, const Real<T, L>& dagger, int rhs) {
  const WilsonNeighbour& where = a.neighbours[k * 8 + Side];
  if ((where.kind & WilsonNeighbour::ghost) != 0) [[unlikely]] {
    const T* from = a.ghosts[Side] + (std::int64_t{where.at} * a.num_rhs + rhs) * 12 * L;
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) h.s[i / 3][i % 3] = load_number<T, L>(from, i);
  } else {
    const T* from = a.in + (std::int64_t{where.at} * a.num_rhs + rhs) * 24 * L;
    project<Side / 2>(h, from, Side % 2 == 0 ? dagger : -dagger);
    if ((where.kind & WilsonNeighbour::rotated) != 0) {
      const int* source = a.lane_sources + Side * L;
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        Complex<T, L>& z = h.s[i / 3][i % 3];
        z = {rotated<T, L>(z.re, source), rotated<T, L>(z.im, source)};
      }
    }
  }
  if ((where.kind & WilsonNeighbour::ends) != 0) [[unlikely]] {
    const Real<T, L> signs = load<L>(a.signs + Side * L);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) h.s[i / 3][i % 3] = signs * h.s[i / 3][i % 3];
  }
}

// sum += the link of vector k on this side times h, with the lower half of the spinor reconstructed.
template <class T, class S, int L, int Rows, int Side>
ONEHOP_INLINE void add_link(Complex<T, L> (&sum)[4][3], const WilsonDslash<T>& a, std::int64_t k,
                            const Real<T, L>& dagger, const Half<T, L>& h) {
  using G = Gamma<Side / 2>;
  const Real<T, L> t = Side % 2 == 0 ? dagger : -dagger;
  const S* link = static_cast<const S*>(a.links) + (k * 8 + Side) * 6 * Rows * L;
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    Complex<T, L> u0{};
    Complex<T, L> u1{};
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      Complex<T, L> e;
      if (Rows == 3 || i < 2) {
        e = load_number<T, L>(link, 3 * i + j);
      } else {
        const int k = (j + 1) % 3;
        const int l = (j + 2) % 3;
        Complex<T, L> z{};
        add_product(z, load_number<T, L>(link, k), load_number<T, L>(link, 3 + l));
        subtract_product(z, load_number<T, L>(link, l), load_number<T, L>(link, 3 + k));
        e = conj(z);
        if constexpr (sizeof(S) != sizeof(T)) e = all<L>(static_cast<T>(1 / short_one)) * e;
      }
      add_product(u0, e, h.s[0][j]);
      add_product(u1, e, h.s[1][j]);
    }
    sum[0][i] = sum[0][i] + u0;
    sum[1][i] = sum[1][i] + u1;
    add_turned<(4 - G::power[0]) % 4>(sum[G::partner[0]][i], t, u0);
    add_turned<(4 - G::power[1]) % 4>(sum[G::partner[1]][i], t, u1);
  }
}

// y += c * x for one of the two Hermitian blocks of a site: the 6 real diagonal entries, then the 15 complex ones
// below, row by row.
template <class T, int L, class S>
ONEHOP_INLINE void add_block(Complex<T, L> (&y)[6], const S* c, const Complex<T, L> (&x)[6]) {
#pragma GCC unroll 6
  for (int i = 0; i < 6; ++i) {
    const Real<T, L> d = load_real<T, L>(c + i * L);
    y[i].re = y[i].re + d * x[i].re;
    y[i].im = y[i].im + d * x[i].im;
  }
#pragma GCC unroll 6
  for (int i = 1; i < 6; ++i) {
#pragma GCC unroll 6
    for (int j = 0; j < i; ++j) {
      const int n = i * (i - 1) / 2 + j;
      const Complex<T, L> e = load_number<T, L>(c + 6 * L, n);
      add_product(y[i], e, x[j]);
      add_conj_product(y[j], e, x[i]);
    }
  }
}

template <class T, int L, class S>
ONEHOP_INLINE void finish_site(Complex<T, L> (&sum)[4][3], const WilsonDslash<T>& a, std::int64_t vector, int rhs) {
  const std::int64_t place = (vector * a.num_rhs + rhs) * 24 * L;
  T* to = a.out + place;
  const Real<T, L> factor = all<L>(a.factor);
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) sum[i / 3][i % 3] = factor * sum[i / 3][i % 3];
  if (a.form == WilsonForm::add) {
    const Real<T, L> other_factor = all<L>(a.other_factor);
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) add_turned<0>(sum[i / 3][i % 3], other_factor, load_number<T, L>(a.other + place, i));
  } else if (a.form != WilsonForm::plain) {
    const S* c = static_cast<const S*>(a.clover) + vector * 72 * L;
    const bool times_other = a.form == WilsonForm::clover_other;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Complex<T, L> x[6];
      Complex<T, L> y[6];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        const Complex<T, L>& z = sum[2 * half + i / 3][i % 3];
        x[i] = times_other ? load_number<T, L>(a.other + place, 6 * half + i) : z;
        if constexpr (sizeof(S) != sizeof(T)) x[i] = load<L>(a.clover_scales + vector * L) * x[i];
        y[i] = times_other ? z : Complex<T, L>{};
      }
      add_block(y, c + half * 36 * L, x);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) put_number(to, 6 * half + i, y[i], a.past_caches);
    }
    return;
  }
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) put_number(to, i, sum[i / 3][i % 3], a.past_caches);
}

// Prefetches into L2, because prefetches into L1 occupy its few line fill buffers. The barriers keep the prefetches
// together: interleaved with loads they cost more than they gain (notes/lattice.md). This function and
// its callers are always inlined because g++ treats a function that only prefetches as one without side effects and
// drops the calls.
ONEHOP_INLINE void fetch(const void* from, int bytes) {
  asm volatile("" ::: "memory");
#pragma GCC unroll 1
  for (int at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char*>(from) + at, 0, 2);
  asm volatile("" ::: "memory");
}

constexpr std::int64_t matrices_ahead = 4;  // prefetch distance of links and clover blocks, in vectors
constexpr std::int64_t fields_ahead = 1;    // prefetch distance of spinors, in vectors

// Prefetches the link of a later vector on this side, and an eighth of its clover blocks.
template <class T, class S, int L, int Rows, int Side>
ONEHOP_INLINE void fetch_matrices(const WilsonDslash<T>& a, std::int64_t now, int rhs) {
  const std::int64_t k = now + matrices_ahead;
  if (rhs > 0 || k >= a.fetched_until) return;
  constexpr int of_link = 6 * Rows * L;
  constexpr int of_blocks = 9 * L;
  constexpr int bytes = static_cast<int>(sizeof(S));
  fetch(static_cast<const S*>(a.links) + (k * 8 + Side) * of_link, of_link * bytes);
  if (a.form == WilsonForm::clover || a.form == WilsonForm::clover_other)
    fetch(static_cast<const S*>(a.clover) + (k * 8 + Side) * of_blocks, of_blocks * bytes);
}
template <class T, int L, int Side>
ONEHOP_INLINE void fetch_neighbour(const WilsonDslash<T>& a, std::int64_t now, int rhs) {
  const std::int64_t k = now + fields_ahead;
  if (k >= a.fetched_until) return;
  const WilsonNeighbour& where = a.neighbours[k * 8 + Side];
  if ((where.kind & WilsonNeighbour::ghost) != 0) return;
  fetch(a.in + (std::int64_t{where.at} * a.num_rhs + rhs) * 24 * L, 24 * L * static_cast<int>(sizeof(T)));
}

template <class T, class S, int L, int Rows, int Side>
ONEHOP_INLINE void add_side(Complex<T, L> (&sum)[4][3], const WilsonDslash<T>& a, std::int64_t k, int rhs,
                            const Real<T, L>& dagger) {
  fetch_matrices<T, S, L, Rows, Side>(a, k, rhs);
  fetch_neighbour<T, L, Side>(a, k, rhs);
  Half<T, L> h;
  gather<T, L, Side>(h, a, k, dagger, rhs);
  add_link<T, S, L, Rows, Side>(sum, a, k, dagger, h);
}

template <class T, int L, int Side>
ONEHOP_INLINE void fetch_and_gather(Half<T, L>& h, const WilsonDslash<T>& a, std::int64_t k, int rhs,
                                    const Real<T, L>& dagger) {
  fetch_neighbour<T, L, Side>(a, k, rhs);
  gather<T, L, Side>(h, a, k, dagger, rhs);
}
template <class T, class S, int L, int Rows, int Side>
ONEHOP_INLINE void fetch_and_add(Complex<T, L> (&sum)[4][3], const WilsonDslash<T>& a, std::int64_t k, int rhs,
                                 const Real<T, L>& dagger, const Half<T, L>& h) {
  fetch_matrices<T, S, L, Rows, Side>(a, k, rhs);
  add_link<T, S, L, Rows, Side>(sum, a, k, dagger, h);
}

// Reads all spinors before all links. Faster than add_sides() if links of three rows come from memory, slower
// otherwise.
template <class T, class S, int L, int Rows>
ONEHOP_INLINE void add_sides_by_kind(Complex<T, L> (&sum)[4][3], const WilsonDslash<T>& a, std::int64_t k, int rhs,
                                     const Real<T, L>& dagger) {
  Half<T, L> h[8];
  fetch_and_gather<T, L, 0>(h[0], a, k, rhs, dagger);
  fetch_and_gather<T, L, 1>(h[1], a, k, rhs, dagger);
  fetch_and_gather<T, L, 2>(h[2], a, k, rhs, dagger);
  fetch_and_gather<T, L, 3>(h[3], a, k, rhs, dagger);
  fetch_and_gather<T, L, 4>(h[4], a, k, rhs, dagger);
  fetch_and_gather<T, L, 5>(h[5], a, k, rhs, dagger);
  fetch_and_gather<T, L, 6>(h[6], a, k, rhs, dagger);
  fetch_and_gather<T, L, 7>(h[7], a, k, rhs, dagger);
  asm volatile("" ::: "memory");
  fetch_and_add<T, S, L, Rows, 0>(sum, a, k, rhs, dagger, h[0]);
  fetch_and_add<T, S, L, Rows, 1>(sum, a, k, rhs, dagger, h[1]);
  fetch_and_add<T, S, L, Rows, 2>(sum, a, k, rhs, dagger, h[2]);
  fetch_and_add<T, S, L, Rows, 3>(sum, a, k, rhs, dagger, h[3]);
  fetch_and_add<T, S, L, Rows, 4>(sum, a, k, rhs, dagger, h[4]);
  fetch_and_add<T, S, L, Rows, 5>(sum, a, k, rhs, dagger, h[5]);
  fetch_and_add<T, S, L, Rows, 6>(sum, a, k, rhs, dagger, h[6]);
  fetch_and_add<T, S, L, Rows, 7>(sum, a, k, rhs, dagger, h[7]);
}

template <class T, class S, int L, int Rows>
ONEHOP_INLINE void add_sides(Complex<T, L> (&sum)[4][3], const WilsonDslash<T>& a, std::int64_t k, int rhs,
                             const Real<T, L>& dagger) {
  add_side<T, S, L, Rows, 0>(sum, a, k, rhs, dagger);
  add_side<T, S, L, Rows, 1>(sum, a, k, rhs, dagger);
  add_side<T, S, L, Rows, 2>(sum, a, k, rhs, dagger);
  add_side<T, S, L, Rows, 3>(sum, a, k, rhs, dagger);
  add_side<T, S, L, Rows, 4>(sum, a, k, rhs, dagger);
  add_side<T, S, L, Rows, 5>(sum, a, k, rhs, dagger);
  add_side<T, S, L, Rows, 6>(sum, a, k, rhs, dagger);
  add_side<T, S, L, Rows, 7>(sum, a, k, rhs, dagger);
}

template <class T, class S, int L, int Rows>
void dslash(const WilsonDslash<T>& a) {
  constexpr bool whole = Rows == 3 && sizeof(S) == sizeof(T);
  const bool from_memory = a.fetched_until > 0;
  const Real<T, L> dagger = all<L>(a.dagger);
  for (std::int64_t k = a.first; k < a.last; ++k) {
    for (int rhs = 0; rhs < a.num_rhs; ++rhs) {
      Complex<T, L> sum[4][3]{};
      if (whole && from_memory) {
        add_sides_by_kind<T, S, L, Rows>(sum, a, k, rhs, dagger);
      } else {
        add_sides<T, S, L, Rows>(sum, a, k, rhs, dagger);
      }
      finish_site<T, L, S>(sum, a, k, rhs);
    }
  }
  if (a.past_caches) finish_streaming();
}

template <class T, int L, int Direction>
void face_of(const WilsonFace<T>& a) {
  // For the rank above, this rank's upper face is the neighbour below, with the projector 1 + gamma; and vice versa.
  const Real<T, L> t = all<L>(a.side % 2 == 1 ? a.dagger : -a.dagger);
  for (std::int64_t k = a.first; k < a.last; ++k) {
    for (int rhs = 0; rhs < a.num_rhs; ++rhs) {
      Half<T, L> h;
      project<Direction>(h, a.in + (std::int64_t{a.vectors[k]} * a.num_rhs + rhs) * 24 * L, t);
      T* to = a.out + (k * a.num_rhs + rhs) * 12 * L;
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) put_number(to, i, h.s[i / 3][i % 3], a.past_caches);
    }
  }
  if (a.past_caches) finish_streaming();
}

template <class T, int L>
void face(const WilsonFace<T>& a) {
  switch (a.side / 2) {
    case 0:
      return face_of<T, L, 0>(a);
    case 1:
      return face_of<T, L, 1>(a);
    case 2:
      return face_of<T, L, 2>(a);
    default:
      return face_of<T, L, 3>(a);
  }
}

template <class T, class S, int L>
void blocks(const WilsonBlocks<T>& a) {
  for (std::int64_t k = a.first; k < a.last; ++k) {
    for (int rhs = 0; rhs < a.num_rhs; ++rhs) {
      const std::int64_t place = (k * a.num_rhs + rhs) * 24 * L;
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        Complex<T, L> x[6];
        Complex<T, L> y[6]{};
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i) {
          x[i] = load_number<T, L>(a.in + place, 6 * half + i);
          if constexpr (sizeof(S) != sizeof(T)) x[i] = load<L>(a.clover_scales + k * L) * x[i];
        }
        add_block(y, static_cast<const S*>(a.clover) + (k * 72 + std::int64_t{half} * 36) * L, x);
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i) store_number(a.out + place, 6 * half + i, y[i]);
      }
    }
  }
}

template <class T, int L>
constexpr WilsonKernels<T> all_kernels() {
  WilsonKernels<T> found{L, {&dslash<T, T, L, 3>, &dslash<T, T, L, 2>}, {}, &face<T, L>, &blocks<T, T, L>, nullptr};
  if constexpr (sizeof(T) == sizeof(float)) {
    found.half_dslash[0] = &dslash<T, std::int16_t, L, 3>;
    found.half_dslash[1] = &dslash<T, std::int16_t, L, 2>;
    found.short_blocks = &blocks<T, std::int16_t, L>;
  }
  return found;
}
template <class T, int L>
inline constexpr WilsonKernels<T> kernels = all_kernels<T, L>();

// The kernels for at most L lanes and at least `Least`, so that rotating lanes takes one instruction.
template <class T, int L, int Least>
const WilsonKernels<T>* find_kernels(int lanes) {
  if (lanes == L) return &kernels<T, L>;
  if constexpr (L > Least) {
    return find_kernels<T, L / 2, Least>(lanes);
  } else {
    return nullptr;
  }
}

template <class T>
const WilsonKernels<T>* best_kernels(int lanes) {
  constexpr int full = ONEHOP_SIMD_BYTES / static_cast<int>(sizeof(T));
  return find_kernels<T, full, ONEHOP_SIMD_BYTES == 64 ? full / 2 : 1>(lanes);  // AVX2 has the shorter vectors
}

}  // namespace

// Each processor's source includes this header once, in a namespace of its own.
// NOLINTBEGIN(misc-definitions-in-headers)
const WilsonKernels<float>* float_wilson(int lanes) { return best_kernels<float>(lanes); }
const WilsonKernels<double>* double_wilson(int lanes) { return best_kernels<double>(lanes); }
// NOLINTEND(misc-definitions-in-headers)

}  // namespace onehop::lattice::ONEHOP_SIMD_NAMESPACE
