#include "staggered_kernel.h"

#include <cstddef>
#include <cstring>

#include "onehop/lattice/su3.h"

namespace onehop::lattice::detail {

namespace {

template <int Lanes>
struct Pack {
  typedef double Type __attribute__((vector_size(Lanes * sizeof(double))));
};
template <int Lanes>
using Real = typename Pack<Lanes>::Type;

template <int Lanes>
inline Real<Lanes> load(const double* from) {
  Real<Lanes> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <int Lanes>
inline su3::Vector<Real<Lanes>> neighbour(const HopRange& range, std::int64_t vector, int side) {
  const Geometry::Neighbour& where = range.neighbours[vector * 2 * range.dims + side];
  const double* from = range.field + std::int64_t{where.vector} * 6 * Lanes;
  su3::Vector<Real<Lanes>> v;
  if (!where.rotated) {
    for (int c = 0; c < 3; ++c) v.c[c] = {load<Lanes>(from + 2 * c * Lanes), load<Lanes>(from + (2 * c + 1) * Lanes)};
    return v;
  }
  const int* source = range.lane_sources + side * Lanes;
  for (int c = 0; c < 3; ++c) {
    for (int lane = 0; lane < Lanes; ++lane) {
      v.c[c].re[lane] = from[2 * c * Lanes + source[lane]];
      v.c[c].im[lane] = from[(2 * c + 1) * Lanes + source[lane]];
    }
  }
  return v;
}

template <int Lanes>
inline void hop(const HopRange& range) {
  for (std::int64_t k = range.first; k < range.last; ++k) {
    su3::Vector<Real<Lanes>> sum{};
    const double* link = range.links + k * 2 * range.dims * 18 * Lanes;
    for (int side = 0; side < 2 * range.dims; ++side, link += 18 * Lanes) {
      const su3::Vector<Real<Lanes>> v = neighbour<Lanes>(range, k, side);
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
          const double* entry = link + (3 * i + j) * 2 * Lanes;
          const Real<Lanes> re = load<Lanes>(entry);
          const Real<Lanes> im = load<Lanes>(entry + Lanes);
          sum.c[i].re += re * v.c[j].re - im * v.c[j].im;
          sum.c[i].im += re * v.c[j].im + im * v.c[j].re;
        }
      }
    }
    std::memcpy(range.out + k * 6 * Lanes, &sum, sizeof sum);
  }
}

template <int Lanes>
[[gnu::flatten]] void portable(const HopRange& range) {
  hop<Lanes>(range);
}

#if defined(__x86_64__)
template <int Lanes>
[[gnu::flatten, gnu::target("avx2,fma")]] void avx2(const HopRange& range) {
  hop<Lanes>(range);
}
template <int Lanes>
[[gnu::flatten, gnu::target("avx512f,avx512dq,avx512vl,fma")]] void avx512(const HopRange& range) {
  hop<Lanes>(range);
}
#endif

template <int Lanes>
HopKernel best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return &avx512<Lanes>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2<Lanes>;
#endif
  return &portable<Lanes>;
}

}  // namespace

HopKernel hop_kernel(int lanes) {
  if (lanes == 8) return best<8>();
  if (lanes == 4) return best<4>();
  if (lanes == 2) return best<2>();
  return best<1>();
}

}  // namespace onehop::lattice::detail
