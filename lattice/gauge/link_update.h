// Heat bath and over-relaxation of links, for as many links at once as R has lanes. Lanes are independent of each
// other, bit for bit.
#pragma once

#include <array>

#include "lattice/geometry/lanes.h"
#include "onehop/lattice/su3.h"

namespace onehop::lattice::detail {

// q0 + i q.sigma, an element of SU(2) if it has length 1.
template <class R>
using Quaternion = std::array<R, 4>;
using Subgroup = std::array<int, 2>;  // the two rows and columns that it acts on

inline constexpr std::array<Subgroup, 3> subgroups{{{0, 1}, {0, 2}, {1, 2}}};

template <class R>
inline Quaternion<R> product(const Quaternion<R>& a, const Quaternion<R>& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] - a[2] * b[3] + a[3] * b[2],
          a[0] * b[2] + a[2] * b[0] - a[3] * b[1] + a[1] * b[3], a[0] * b[3] + a[3] * b[0] - a[1] * b[2] + a[2] * b[1]};
}

// The SU(2) part of m in a subgroup: length * direction, with direction in SU(2). g = adjoint(direction) maximises Re
// tr(g m) in the subgroup.
template <class R>
struct Projection {
  R length;
  Quaternion<R> direction;  // 1 if the length is 0
};

template <class R>
inline Projection<R> project(const su3::Matrix<R>& m, const Subgroup& s) {
  const auto& a = m.e[s[0]][s[0]];
  const auto& b = m.e[s[0]][s[1]];
  const auto& c = m.e[s[1]][s[0]];
  const auto& d = m.e[s[1]][s[1]];
  const Quaternion<R> r{0.5 * (a.re + d.re), 0.5 * (b.im + c.im), 0.5 * (b.re - c.re), 0.5 * (a.im - d.im)};
  const R length = square_root(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3]);
  const Mask<R> nonzero = length > R{} + 1e-200;
  const R scale = nonzero ? 1 / length : R{};
  return {length, {nonzero ? scale * r[0] : R{} + 1, scale * r[1], scale * r[2], scale * r[3]}};
}

template <class R>
inline Quaternion<R> adjoint_of(const Quaternion<R>& q) {
  return {q[0], -q[1], -q[2], -q[3]};
}

template <class R>
inline void multiply_from_left(const Quaternion<R>& g, const Subgroup& s, su3::Matrix<R>& m) {
  const su3::Complex<R> a{g[0], g[3]};
  const su3::Complex<R> b{g[2], g[1]};
  for (int j = 0; j < 3; ++j) {
    const auto upper = m.e[s[0]][j];
    const auto lower = m.e[s[1]][j];
    m.e[s[0]][j] = a * upper + b * lower;
    m.e[s[1]][j] = conj(a) * lower - conj(b) * upper;
  }
}

// Draws x in [-1, 1] with the density sqrt(1 - x^2) exp(a x), for a >= 0, in the lanes of `wanted`. Uses the random
// numbers from `first` on.
template <class R>
inline R draw_cosine(const R& a, const RandomLanes<R>& random, std::uint32_t first, Mask<R> wanted) {
  R found{};
  const Mask<R> strong = a >= R{} + 1.5;
  for (std::uint32_t number = first; any(wanted); number += 2) {
    const auto [u, v] = random.two(number);
    R x{};
    Mask<R> refused{};
    const Mask<R> by_tail = strong ? wanted : Mask<R>{};
    const Mask<R> by_value = strong ? Mask<R>{} : wanted;
    if (any(by_tail)) {  // Kennedy and Pendleton (1985)
      const auto [w, accept] = random.two(number + 1);
      const R cosine = cosine_and_sine_of_turns<R>(v).first;
      const R below = -(logarithm<R>(u) + cosine * cosine * logarithm<R>(w)) / a;
      x = 1 - below;
      refused = accept * accept > 1 - 0.5 * below;
    }
    if (any(by_value)) {  // a uniform x, accepted with the probability of its weight
      const R even = 2 * u - 1;
      const Mask<R> not_kept = 2 * logarithm<R>(v) > logarithm<R>(1 - even * even) + 2 * a * (even - 1);
      x = strong ? x : even;
      refused = strong ? refused : not_kept;
    }
    const Mask<R> taken = refused ? Mask<R>{} : wanted;
    found = taken ? x : found;
    wanted = refused ? wanted : Mask<R>{};
  }
  return found;
}

// Heat bath: draws links from exp(beta / 3 Re tr(U staples†)) in three SU(2) subgroups, one after the other (Cabibbo
// and Marinari, 1982).
template <class R>
inline void heat_bath_link(su3::Matrix<R>& link, const su3::Matrix<R>& staples, double beta,
                           const RandomLanes<R>& random, const Mask<R>& wanted) {
  su3::Matrix<R> together = su3::times_adjoint(link, staples);
  std::uint32_t part = 0;
  for (const Subgroup& s : subgroups) {
    const Projection<R> projection = project(together, s);
    const auto [u, v] = random.two(part);
    const R first = draw_cosine<R>((2 * beta / 3) * projection.length, random, part + 1, wanted);
    part += 1u << 16;
    const R up = 2 * u - 1;
    const auto positive = [](const R& x) { return x > R{} ? x : R{}; };
    const R remaining = square_root(positive(1 - first * first));
    const R across = remaining * square_root(positive(1 - up * up));
    const auto [cosine, sine] = cosine_and_sine_of_turns<R>(v);
    const Quaternion<R> g =
        product<R>({first, across * cosine, across * sine, remaining * up}, adjoint_of<R>(projection.direction));
    multiply_from_left<R>(g, s, link);
    multiply_from_left<R>(g, s, together);
  }
}

// Over-relaxation (Creutz, 1987): reflects the link at the maximum of Re tr(U staples†) in each subgroup, which
// preserves that trace.
template <class R>
inline void over_relax_link(su3::Matrix<R>& link, const su3::Matrix<R>& staples) {
  su3::Matrix<R> together = su3::times_adjoint(link, staples);
  for (const Subgroup& s : subgroups) {
    const Quaternion<R> back = adjoint_of<R>(project(together, s).direction);
    const Quaternion<R> g = product<R>(back, back);
    multiply_from_left<R>(g, s, link);
    multiply_from_left<R>(g, s, together);
  }
}

}  // namespace onehop::lattice::detail
