// The staggered inner loop. Each dslash_kernel_*.cc instantiates it for one precision, so that they compile in
// parallel.
#pragma once

#include "lattice/staggered/dslash_kernel.h"

namespace onehop::lattice::detail {

template <class Real, int Count>
struct DslashVector {
  simd::Vector<Real, Count> re[3];
  simd::Vector<Real, Count> im[3];
};

template <class Link, class Real, int Count>
inline simd::Vector<Real, Count> link_lanes(const Link* from) {
  return simd::convert<simd::Vector<Real, Count>>(simd::load<simd::Vector<Link, Count>>(from));
}

template <class Real, int Count>
inline DslashVector<Real, Count> load_vector(const Real* from) {
  DslashVector<Real, Count> v;
  for (int c = 0; c < 3; ++c) {
    v.re[c] = simd::load<simd::Vector<Real, Count>>(from + 2 * c * Count);
    v.im[c] = simd::load<simd::Vector<Real, Count>>(from + (2 * c + 1) * Count);
  }
  return v;
}

template <class Real, int Count>
inline void rotate(DslashVector<Real, Count>& v, const std::int32_t* source) {
  if constexpr (Count > 1) {
    const auto mask = simd::convert<simd::Mask<simd::Vector<Real, Count>>>(
        simd::load_source<simd::Vector<std::int32_t, Count>>(source));
    // Not a loop: clang would take the lanes' numbers from `mask` before it, and then move lane by lane.
    v.re[0] = simd::shuffle(v.re[0], mask);
    v.im[0] = simd::shuffle(v.im[0], mask);
    v.re[1] = simd::shuffle(v.re[1], mask);
    v.im[1] = simd::shuffle(v.im[1], mask);
    v.re[2] = simd::shuffle(v.re[2], mask);
    v.im[2] = simd::shuffle(v.im[2], mask);
  }
}

// Prefetches into L2. Prefetches into L1 occupy its few line fill buffers, as loads do, and halve the memory bandwidth.
// This function and its callers are always_inline because g++ treats a function that only prefetches as one without
// side effects and drops the calls.
[[gnu::always_inline]] inline void fetch(const void* from, int bytes) {
  for (int at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char*>(from) + at, 0, 2);
}

template <class Link, class Real, int Count, int NumRhs>
struct DslashBody {
  using Vector = DslashVector<Real, Count>;
  using Loop = DslashLoop<Link, Real>;

  // sum += link * field
  static inline void ahead(const Loop& loop, std::int64_t k, int kind, Vector (&sum)[NumRhs]) {
    const std::int32_t where = loop.neighbours[(k * loop.kinds + kind) * 2 + 1];
    const Real* from = loop.field + (std::int64_t{where >> 1} * loop.num_rhs + loop.rhs) * 6 * Count;
    Vector v[NumRhs];
    for (int n = 0; n < NumRhs; ++n) {
      v[n] = load_vector<Real, Count>(from + n * 6 * Count);
      if ((where & 1) != 0) rotate<Real, Count>(v[n], loop.rotations + (kind * 2 + 1) * Count);
    }
    const Link* link = loop.stream != nullptr ? loop.stream + (k * loop.kinds + kind) * 36 * Count
                                              : loop.links[static_cast<std::size_t>(kind)] + k * 18 * Count;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j, link += 2 * Count) {
        const simd::Vector<Real, Count> re = link_lanes<Link, Real, Count>(link);
        const simd::Vector<Real, Count> im = link_lanes<Link, Real, Count>(link + Count);
        for (int n = 0; n < NumRhs; ++n) {
          sum[n].re[i] += re * v[n].re[j];
          sum[n].im[i] += re * v[n].im[j];
          sum[n].re[i] -= im * v[n].im[j];
          sum[n].im[i] += im * v[n].re[j];
        }
      }
    }
  }

  // sum -= adjoint(link) * field. Without a stream, link and field are both in the neighbour's lanes, so the product is
  // rotated instead.
  static inline void behind(const Loop& loop, std::int64_t k, int kind, Vector (&sum)[NumRhs]) {
    const std::int32_t where = loop.neighbours[(k * loop.kinds + kind) * 2];
    const std::int64_t vector = where >> 1;
    const Real* from = loop.field + (vector * loop.num_rhs + loop.rhs) * 6 * Count;
    Vector v[NumRhs];
    Vector product[NumRhs]{};
    for (int n = 0; n < NumRhs; ++n) v[n] = load_vector<Real, Count>(from + n * 6 * Count);
    const std::int32_t* rotation = (where & 1) != 0 ? loop.rotations + kind * 2 * Count : nullptr;
    const Link* link = loop.links[static_cast<std::size_t>(kind)] + vector * 18 * Count;
    if (loop.stream != nullptr) {
      link = loop.stream + ((k * loop.kinds + kind) * 2 + 1) * 18 * Count;
      for (int n = 0; n < NumRhs && rotation != nullptr; ++n) rotate<Real, Count>(v[n], rotation);
      rotation = nullptr;
    }
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 3; ++i, link += 2 * Count) {
        const simd::Vector<Real, Count> re = link_lanes<Link, Real, Count>(link);
        const simd::Vector<Real, Count> im = link_lanes<Link, Real, Count>(link + Count);
        for (int n = 0; n < NumRhs; ++n) {
          product[n].re[i] += re * v[n].re[j];
          product[n].im[i] += re * v[n].im[j];
          product[n].re[i] += im * v[n].im[j];
          product[n].im[i] -= im * v[n].re[j];
        }
      }
    }
    for (int n = 0; n < NumRhs; ++n) {
      if (rotation != nullptr) rotate<Real, Count>(product[n], rotation);
      for (int c = 0; c < 3; ++c) {
        sum[n].re[c] -= product[n].re[c];
        sum[n].im[c] -= product[n].im[c];
      }
    }
  }

  static inline void scale(Vector (&sum)[NumRhs], double by) {
    const auto factor = static_cast<Real>(by);
    for (int n = 0; n < NumRhs; ++n) {
      for (int c = 0; c < 3; ++c) {
        sum[n].re[c] *= factor;
        sum[n].im[c] *= factor;
      }
    }
  }

  static inline void finish(const Loop& loop, std::int64_t k, const Vector (&sum)[NumRhs],
                            simd::Vector<double, Count> (&dots)[NumRhs]) {
    for (int n = 0; n < NumRhs; ++n) {
      const std::int64_t at = ((k - loop.out_begin) * loop.num_rhs + loop.rhs + n) * 6 * Count;
      Vector out = sum[n];
      if (loop.own != nullptr) {
        const Vector own = load_vector<Real, Count>(loop.own + at);
        const auto own_factor = static_cast<Real>(loop.own_factor);
        simd::Vector<double, Count> dot{};
        for (int c = 0; c < 3; ++c) {
          out.re[c] += own_factor * own.re[c];
          out.im[c] += own_factor * own.im[c];
          dot += simd::convert<simd::Vector<double, Count>>(own.re[c]) *
                 simd::convert<simd::Vector<double, Count>>(out.re[c]);
          dot += simd::convert<simd::Vector<double, Count>>(own.im[c]) *
                 simd::convert<simd::Vector<double, Count>>(out.im[c]);
        }
        if (loop.wide != nullptr) {
          for (int lane = 0; lane < Count; ++lane) loop.wide[loop.rhs + n].add(dot[lane]);
        } else {
          dots[n] += dot;
        }
      }
      for (int c = 0; c < 3; ++c) {
        simd::store(loop.out + at + 2 * c * Count, out.re[c]);
        simd::store(loop.out + at + (2 * c + 1) * Count, out.im[c]);
      }
    }
  }

  // Prefetches the links of this kind for vector k. With a stream also the neighbours in the last direction: those in
  // the other directions are close enough to be in L2.
  [[gnu::always_inline]] static inline void prefetch(const Loop& loop, std::int64_t k, int kind) {
    constexpr int bytes = 18 * Count * static_cast<int>(sizeof(Link));
    constexpr int vector = 6 * Count * static_cast<int>(sizeof(Real));
    const std::int32_t* where = loop.neighbours + (k * loop.kinds + kind) * 2;
    if (loop.stream == nullptr) {
      fetch(loop.links[static_cast<std::size_t>(kind)] + std::int64_t{where[0] >> 1} * 18 * Count, bytes);
      fetch(loop.links[static_cast<std::size_t>(kind)] + k * 18 * Count, bytes);
      return;
    }
    fetch(loop.stream + (k * loop.kinds + kind) * 36 * Count, 2 * bytes);
    if ((kind + 1) % loop.directions != 0) return;
    for (int side = 0; side < 2; ++side)
      fetch(loop.field + (std::int64_t{where[side] >> 1} * loop.num_rhs + loop.rhs) * 6 * Count, NumRhs * vector);
  }

  static inline void run(const Loop& loop) {
    simd::Vector<double, Count> dots[NumRhs]{};
    const std::int64_t count = loop.last - loop.first;
    const std::int64_t step = loop.backwards ? -1 : 1;
    std::int64_t k = loop.backwards ? loop.last - 1 : loop.first;
    for (std::int64_t i = 0; i < count && i < loop.ahead; ++i) {
      for (int kind = 0; kind < loop.kinds; ++kind) prefetch(loop, k + i * step, kind);
    }
    for (std::int64_t i = 0; i < count; ++i, k += step) {
      Vector sum[NumRhs]{};
      const bool more = loop.ahead > 0 && i + loop.ahead < count;
      for (int kind = 0; kind < loop.kinds; ++kind) {
        const auto number = static_cast<std::size_t>(kind);
        if (kind > 0 && loop.factors[number] != loop.factors[number - 1])
          scale(sum, loop.factors[number - 1] / loop.factors[number]);
        if (more) prefetch(loop, k + loop.ahead * step, kind);
        ahead(loop, k, kind, sum);
        behind(loop, k, kind, sum);
      }
      const double factor = loop.dslash_factor * loop.factors[static_cast<std::size_t>(loop.kinds - 1)];
      if (factor != 1) scale(sum, factor);
      finish(loop, k, sum, dots);
    }
    if (loop.plain == nullptr) return;
    for (int n = 0; n < NumRhs; ++n) {
      for (int lane = 0; lane < Count; ++lane) loop.plain[loop.rhs + n] += dots[n][lane];
    }
  }
};

template <class Link, class Real, int Count, int NumRhs>
LoopFunction<DslashLoop<Link, Real>> dslash_loop(bool plain) {
  using Loop = DslashBody<Link, Real, Count, NumRhs>;
  return plain ? &portable_loop<Loop, DslashLoop<Link, Real>> : best_loop<Loop, DslashLoop<Link, Real>>();
}

template <class Link, class Real, int Count>
DslashKernel<Link, Real> dslash_kernel_of(int num_rhs, bool plain) {
  if (num_rhs >= 4) return {dslash_loop<Link, Real, Count, 4>(plain), 4};
  return {dslash_loop<Link, Real, Count, 1>(plain), 1};
}

template <class Link, class Real>
DslashKernel<Link, Real> dslash_kernel(int lanes, int num_rhs, bool plain) {
  if (lanes == 8) return dslash_kernel_of<Link, Real, 8>(num_rhs, plain);
  if (lanes == 4) return dslash_kernel_of<Link, Real, 4>(num_rhs, plain);
  if (lanes == 2) return dslash_kernel_of<Link, Real, 2>(num_rhs, plain);
  return dslash_kernel_of<Link, Real, 1>(num_rhs, plain);
}

}  // namespace onehop::lattice::detail
