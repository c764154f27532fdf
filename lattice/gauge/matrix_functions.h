// Functions of 3x3 matrices, for as many sites at once as R has lanes. Lanes are independent of each other, bit for
// bit.
#pragma once

#include "lattice/geometry/lanes.h"
#include "lattice/geometry/site_loop.h"

namespace onehop::lattice::detail {

template <class R>
using MatrixOf = su3::Matrix<R>;
template <class R>
using ComplexOf = su3::Complex<R>;

template <class R>
inline MatrixOf<R> operator-(const MatrixOf<R>& a, const MatrixOf<R>& b) {
  MatrixOf<R> m;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) m.e[i][j] = a.e[i][j] - b.e[i][j];
  }
  return m;
}

template <class R>
inline MatrixOf<R> scaled(const ComplexOf<R>& z, const MatrixOf<R>& a) {
  MatrixOf<R> m;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) m.e[i][j] = z * a.e[i][j];
  }
  return m;
}

// The squared Frobenius norm.
template <class R>
inline R norm_squared(const MatrixOf<R>& a) {
  R sum{};
  for (const auto& row : a.e) {
    for (const ComplexOf<R>& z : row) sum = sum + (z.re * z.re + z.im * z.im);
  }
  return sum;
}

template <class R>
inline ComplexOf<R> determinant(const MatrixOf<R>& a) {
  return a.e[0][0] * (a.e[1][1] * a.e[2][2] - a.e[1][2] * a.e[2][1]) +
         a.e[0][1] * (a.e[1][2] * a.e[2][0] - a.e[1][0] * a.e[2][2]) +
         a.e[0][2] * (a.e[1][0] * a.e[2][1] - a.e[1][1] * a.e[2][0]);
}

// The inverse of the adjoint.
template <class R>
inline MatrixOf<R> inverse_adjoint(const MatrixOf<R>& a) {
  MatrixOf<R> m;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const int k = (i + 1) % 3, l = (i + 2) % 3, n = (j + 1) % 3, o = (j + 2) % 3;
      m.e[i][j] = conj(a.e[k][n] * a.e[l][o] - a.e[k][o] * a.e[l][n]);
    }
  }
  const ComplexOf<R> det = determinant(a);
  const R scale = 1 / (det.re * det.re + det.im * det.im);
  return scaled(ComplexOf<R>{det.re * scale, det.im * scale}, m);
}

// a where `mask` is set, b elsewhere.
template <class R>
inline MatrixOf<R> where(const Mask<R>& mask, const MatrixOf<R>& a, const MatrixOf<R>& b) {
  MatrixOf<R> m;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) m.e[i][j] = {mask ? a.e[i][j].re : b.e[i][j].re, mask ? a.e[i][j].im : b.e[i][j].im};
  }
  return m;
}

// V (V^dagger V)^(-1/2), the unitary matrix nearest to V, by Newton's iteration V -> (s V + adjoint(V)^-1 / s) / 2. The
// scale s keeps the number of steps small for matrices far from unitary. Not finite if V is singular.
template <class R>
inline MatrixOf<R> nearest_unitary(MatrixOf<R> v) {
  Mask<R> wanted = R{} < R{} + 1;
  for (int step = 0; step < 10 && any(wanted); ++step) {
    const MatrixOf<R> other = inverse_adjoint(v);
    const R scale = square_root(square_root(norm_squared(other) / norm_squared(v)));
    const MatrixOf<R> a = (0.5 * scale) * v, b = (0.5 / scale) * other;
    v = where<R>(wanted, a + b, v);
    // Newton's iteration converges quadratically: half the square of this difference is left.
    wanted = norm_squared(a - b) < R{} + 1e-17 ? Mask<R>{} : wanted;
  }
  return v;
}

// The argument of a number that is not 0, in [-pi, pi].
template <class R>
inline R argument(const ComplexOf<R>& z) {
  const R re = z.re < R{} ? -z.re : z.re, im = z.im < R{} ? -z.im : z.im;
  const Mask<R> steep = im > re;
  R tangent = steep ? re / im : im / re;
  for (int half = 0; half < 2; ++half) tangent = tangent / (1 + square_root(1 + tangent * tangent));
  const R square = tangent * tangent;  // below 0.04
  R sum{};
  for (int n = 23; n >= 1; n -= 2) sum = 1.0 / n - square * sum;
  const R angle = 4 * tangent * sum;
  const R quarter = steep ? 1.5707963267948966 - angle : angle;
  const R turn = z.re < R{} ? 3.141592653589793 - quarter : quarter;
  return z.im < R{} ? -turn : turn;
}

// exp(i angle / 3) for an angle in [-pi, pi].
template <class R>
inline ComplexOf<R> third_of_turn(const R& angle) {
  const Mask<R> negative = angle < R{};
  const auto [cosine, sine] = cosine_and_sine_of_turns<R>((negative ? -angle : angle) * (1 / 18.84955592153876));
  return {cosine, negative ? -sine : sine};
}

// nearest_unitary(v) divided by the cube root of its determinant that is nearest to 1, which is in SU(3).
template <class R>
inline MatrixOf<R> nearest_special(const MatrixOf<R>& v) {
  const MatrixOf<R> u = nearest_unitary(v);
  return scaled(third_of_turn<R>(-argument(determinant(u))), u);
}

// (a - a^dagger) / 2 without its trace.
template <class R>
inline MatrixOf<R> traceless_antihermitian(const MatrixOf<R>& a) {
  MatrixOf<R> m;
  for (int i = 0; i < 3; ++i) {
    m.e[i][i] = {R{}, a.e[i][i].im};
    for (int j = 0; j < i; ++j) {
      m.e[i][j] = {0.5 * (a.e[i][j].re - a.e[j][i].re), 0.5 * (a.e[i][j].im + a.e[j][i].im)};
      m.e[j][i] = {-m.e[i][j].re, m.e[i][j].im};
    }
  }
  const R trace = (a.e[0][0].im + a.e[1][1].im + a.e[2][2].im) * (1.0 / 3);
  for (int i = 0; i < 3; ++i) m.e[i][i].im = m.e[i][i].im - trace;
  return m;
}

// The exponential of any single matrix.
[[gnu::noinline]] inline void exponential_of_one(MatrixOf<double>& m) { m = su3::exponential(m); }

template <class R>
inline void recompute_large(MatrixOf<R>& result, const MatrixOf<R>& a, const R& norm, double largest) {
  if constexpr (std::is_same_v<R, double>) {
    if (norm <= largest) return;
    result = a;
    exponential_of_one(result);
  } else {
    for (std::size_t lane = 0; lane < sizeof(R) / sizeof(double); ++lane) {
      if (norm[lane] <= largest) continue;
      MatrixOf<double> one;
      for (int i = 0; i < 9; ++i) one.e[i / 3][i % 3] = {a.e[i / 3][i % 3].re[lane], a.e[i / 3][i % 3].im[lane]};
      exponential_of_one(one);
      for (int i = 0; i < 9; ++i) {
        result.e[i / 3][i % 3].re[lane] = one.e[i / 3][i % 3].re;
        result.e[i / 3][i % 3].im[lane] = one.e[i / 3][i % 3].im;
      }
    }
  }
}

// The exponential of a traceless anti-Hermitian matrix. By the characteristic equation a^3 = p a + q every polynomial
// in `a` reduces to second degree, so a term of the Taylor series costs a few operations. The series is that of a / 4,
// squared twice.
template <class R>
inline MatrixOf<R> exponential_antihermitian(const MatrixOf<R>& a) {
  const MatrixOf<R> quarter = (R{} + 0.25) * a;
  const MatrixOf<R> square = quarter * quarter;
  const R p = 0.5 * su3::real_trace(square);
  const R q = determinant(quarter).im;  // the determinant is imaginary
  ComplexOf<R> c0{R{} + 1, R{}}, c1{}, c2{};
  for (int n = 24; n >= 1; --n) {
    const R part = R{} + 1.0 / n;
    const ComplexOf<R> next0{1 - part * (q * c2.im), part * (q * c2.re)};
    const ComplexOf<R> next1{part * (c0.re + p * c2.re), part * (c0.im + p * c2.im)};
    c2 = part * c1;
    c0 = next0;
    c1 = next1;
  }
  MatrixOf<R> sum = scaled(c1, quarter) + scaled(c2, square);
  for (int i = 0; i < 3; ++i) sum.e[i][i] = sum.e[i][i] + c0;
  sum = sum * sum;
  sum = sum * sum;
  recompute_large(sum, a, norm_squared(a), 64.0);  // the series is too short for them
  return sum;
}

}  // namespace onehop::lattice::detail
