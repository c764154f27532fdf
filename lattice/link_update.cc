#include "link_update.h"

#include <algorithm>
#include <array>

namespace onehop::lattice::detail {

namespace {

// q0 + i q.sigma: an element of SU(2) where it has length 1.
using Quaternion = std::array<double, 4>;
using Subgroup = std::array<int, 2>;  // the two rows and columns that it acts on

constexpr std::array<Subgroup, 3> subgroups{{{0, 1}, {0, 2}, {1, 2}}};

Quaternion product(const Quaternion& a, const Quaternion& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] - a[2] * b[3] + a[3] * b[2],
          a[0] * b[2] + a[2] * b[0] - a[3] * b[1] + a[1] * b[3], a[0] * b[3] + a[3] * b[0] - a[1] * b[2] + a[2] * b[1]};
}

// What of a 2x2 block acts in Re tr(g block) for g in SU(2).
Quaternion part_of(const Link& m, const Subgroup& s) {
  const auto& a = m.e[s[0]][s[0]];
  const auto& b = m.e[s[0]][s[1]];
  const auto& c = m.e[s[1]][s[0]];
  const auto& d = m.e[s[1]][s[1]];
  return {(a.re + d.re) / 2, (b.im + c.im) / 2, (b.re - c.re) / 2, (a.im - d.im) / 2};
}

void multiply_from_left(const Quaternion& g, const Subgroup& s, Link& m) {
  const su3::Complex<double> a{g[0], g[3]};
  const su3::Complex<double> b{g[2], g[1]};
  for (int j = 0; j < 3; ++j) {
    const auto upper = m.e[s[0]][j];
    const auto lower = m.e[s[1]][j];
    m.e[s[0]][j] = a * upper + b * lower;
    m.e[s[1]][j] = conj(a) * lower - conj(b) * upper;
  }
}

// From sqrt(1 - x^2) exp(a x) on [-1, 1].
double draw_first(double a, Random& random) {
  for (;;) {
    if (a < 1.5) {  // exp(a x) is drawn, and the square root accepts
      const auto [u, v] = random.two();
      const double x = a < 1e-10 ? 2 * u - 1 : std::clamp(1 + std::log1p(std::expm1(-2 * a) * (1 - u)) / a, -1.0, 1.0);
      if (v * v <= 1 - x * x) return x;
    } else {  // Kennedy and Pendleton
      const auto [u, v] = random.two();
      const auto [w, accept] = random.two();
      const double cosine = std::cos(2 * std::numbers::pi * v);
      const double below = -(std::log(u) + cosine * cosine * std::log(w)) / a;
      if (accept * accept <= 1 - below / 2) return 1 - below;
    }
  }
}

}  // namespace

void heat_bath_link(Link& link, const Link& staples, double beta, Random& random) {
  for (const Subgroup& s : subgroups) {
    const Quaternion r = part_of(link * staples, s);
    const double length = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3]);
    const double first = draw_first(2 * beta * length / 3, random);
    const auto [u, v] = random.two();
    const double up = 2 * u - 1;
    const double rest = std::sqrt(std::max(0.0, 1 - first * first));
    const double across = rest * std::sqrt(std::max(0.0, 1 - up * up));
    const double angle = 2 * std::numbers::pi * v;
    Quaternion g{first, across * std::cos(angle), across * std::sin(angle), rest * up};
    if (length > 1e-200) g = product(g, {r[0] / length, -r[1] / length, -r[2] / length, -r[3] / length});
    multiply_from_left(g, s, link);
  }
}

void over_relax_link(Link& link, const Link& staples) {
  for (const Subgroup& s : subgroups) {
    const Quaternion r = part_of(link * staples, s);
    const double length = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3]);
    if (length < 1e-200) continue;
    const Quaternion back{r[0] / length, -r[1] / length, -r[2] / length, -r[3] / length};
    multiply_from_left(product(back, back), s, link);
  }
}

// Three rows of independent normal numbers, made orthogonal: as likely as the same turned by any matrix.
Link random_link(Random& random) {
  Link m;
  for (auto& row : m.e) {
    for (auto& z : row) {
      const auto [re, im] = random.two_normal();
      z = {re, im};
    }
  }
  su3::reunitarise(m);
  return m;
}

}  // namespace onehop::lattice::detail
