// In the basis of the Bell states (with suitable phases) one-bit gates of determinant 1 on both bits are the real rotations of
// four dimensions, and X X, Y Y, Z Z are diagonal. So with U' = K D P^T there, K and P real rotations, U'^T U' = P D^2 P^T: its
// eigenvectors give P, its eigenvalues D, and the rest is K.
#include "engine_split.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace onehop::quantum {
namespace {

using Number = std::complex<double>;
using Matrix4 = std::array<Number, 16>;
using Real4 = std::array<double, 16>;

// Without the cases for infinities that operator* has: circuits of thousands of gates are split.
Number times(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

Matrix4 times(const Matrix4& a, const Matrix4& b) {
  Matrix4 c{};
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::size_t j = 0; j < 4; ++j) c[r * 4 + j] += times(a[r * 4 + k], b[k * 4 + j]);
    }
  }
  return c;
}

Matrix4 transposed(const Matrix4& a) {
  Matrix4 t;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 4; ++c) t[c * 4 + r] = a[r * 4 + c];
  }
  return t;
}

Matrix4 adjoint(const Matrix4& a) {
  Matrix4 t = transposed(a);
  for (Number& x : t) x = std::conj(x);
  return t;
}

double distance(const Matrix4& a, const Matrix4& b) {
  double worst = 0;
  for (std::size_t i = 0; i < 16; ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

Matrix4 identity() {
  Matrix4 one{};
  for (std::size_t i = 0; i < 4; ++i) one[i * 5] = 1;
  return one;
}

// The Bell states as columns.
Matrix4 bell() {
  const double h = std::sqrt(0.5);
  const Number i(0, h);
  return {h, 0, 0, i, 0, i, h, 0, 0, i, -h, 0, h, 0, 0, -i};
}

Number determinant(Matrix4 m) {
  Number result = 1;
  for (std::size_t k = 0; k < 4; ++k) {
    std::size_t pivot = k;
    for (std::size_t r = k + 1; r < 4; ++r) {
      if (std::abs(m[r * 4 + k]) > std::abs(m[pivot * 4 + k])) pivot = r;
    }
    if (pivot != k) {
      for (std::size_t c = 0; c < 4; ++c) std::swap(m[k * 4 + c], m[pivot * 4 + c]);
      result = -result;
    }
    result *= m[k * 5];
    for (std::size_t r = k + 1; r < 4; ++r) {
      const Number factor = m[r * 4 + k] / m[k * 5];
      for (std::size_t c = k; c < 4; ++c) m[r * 4 + c] -= times(factor, m[k * 4 + c]);
    }
  }
  return result;
}

// The eigenvectors, as columns, of a symmetric matrix, by Jacobi's rotations.
Real4 eigenvectors(Real4 a) {
  Real4 v{};
  for (std::size_t i = 0; i < 4; ++i) v[i * 5] = 1;
  for (int sweep = 0; sweep < 30; ++sweep) {
    double off = 0;
    for (std::size_t p = 0; p < 4; ++p) {
      for (std::size_t q = p + 1; q < 4; ++q) {
        off = std::max(off, std::abs(a[p * 4 + q]));
        if (std::abs(a[p * 4 + q]) < 1e-20) continue;
        const double theta = (a[q * 5] - a[p * 5]) / (2 * a[p * 4 + q]);
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1);
        const double s = t * c;
        for (std::size_t k = 0; k < 4; ++k) {
          const double kp = a[k * 4 + p];
          const double kq = a[k * 4 + q];
          a[k * 4 + p] = c * kp - s * kq;
          a[k * 4 + q] = s * kp + c * kq;
        }
        for (std::size_t k = 0; k < 4; ++k) {
          const double pk = a[p * 4 + k];
          const double qk = a[q * 4 + k];
          a[p * 4 + k] = c * pk - s * qk;
          a[q * 4 + k] = s * pk + c * qk;
          const double vp = v[k * 4 + p];
          const double vq = v[k * 4 + q];
          v[k * 4 + p] = c * vp - s * vq;
          v[k * 4 + q] = s * vp + c * vq;
        }
      }
    }
    if (off < 1e-9) break;  // what was left before this sweep is squared by it
  }
  return v;
}

// A rotation P such that P^T (symmetric, unitary) P is diagonal: its real and imaginary parts commute, so the eigenvectors of nearly
// every combination of the two are those of both.
Matrix4 common_eigenvectors(const Matrix4& symmetric) {
  Matrix4 best = identity();
  double least = 1e300;
  for (const double angle : {0.6180339887, 1.9021130326, 2.7182818285, 0.1234567891}) {
    Real4 combination;
    for (std::size_t i = 0; i < 16; ++i) {
      combination[i] = std::cos(angle) * symmetric[i].real() + std::sin(angle) * symmetric[i].imag();
    }
    const Real4 v = eigenvectors(combination);
    Matrix4 p;
    for (std::size_t i = 0; i < 16; ++i) p[i] = v[i];
    if (determinant(p).real() < 0) {
      for (std::size_t r = 0; r < 4; ++r) p[r * 4] = -p[r * 4];
    }
    const Matrix4 d = times(transposed(p), times(symmetric, p));
    double off = 0;
    for (std::size_t i = 0; i < 16; ++i) off = std::max(off, i % 5 == 0 ? 0.0 : std::abs(d[i]));
    if (off < least) {
      least = off;
      best = p;
    }
    if (least < 3e-14) break;
  }
  return best;
}

// m = phase * (high x low), of determinant 1 each.
std::pair<Matrix2, Matrix2> factors(const Matrix4& m) {
  std::size_t big = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    if (std::abs(m[i]) > std::abs(m[big])) big = i;
  }
  const std::size_t row = big / 4;
  const std::size_t column = big % 4;
  Matrix2 low;
  Matrix2 high;
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t c = 0; c < 2; ++c) {
      low[r * 2 + c] = m[(row / 2 * 2 + r) * 4 + column / 2 * 2 + c];
      high[r * 2 + c] = m[(r * 2 + row % 2) * 4 + c * 2 + column % 2];
    }
  }
  const Number scale = std::sqrt(low[0] * low[3] - low[1] * low[2]);
  for (Number& x : low) x /= scale;
  for (Number& x : high) x /= low[(row % 2) * 2 + column % 2];
  return {low, high};
}

// Turns what rotates about another axis only into what rotates about Z: W Z W^-1 is that axis.
void turn_to_z(TwoBitSplit& split) {
  constexpr double nothing = 1e-13;
  const bool x = std::abs(split.xx) > nothing;
  const bool y = std::abs(split.yy) > nothing;
  if (std::abs(split.zz) > nothing || x == y) return;
  const double h = std::sqrt(0.5);
  const Number i(0, h);
  const Matrix2 turn = x ? Matrix2{h, h, h, -h} : Matrix2{h, i, i, h};
  const Matrix2 back = x ? turn : Matrix2{h, -i, -i, h};
  for (int b = 0; b < 2; ++b) {
    split.after[b] = product(split.after[b], turn);
    split.before[b] = product(back, split.before[b]);
  }
  split.zz = x ? split.xx : split.yy;
  split.xx = split.yy = 0;
}

}  // namespace

Matrix2 product(const Matrix2& a, const Matrix2& b) {
  return {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
}

// In the Bell basis m = U'^T U' has the same eigenvalues as the square of the gate's diagonal part. Its invariants under one-bit gates,
// t = tr(m)^2 / (16 det U) and s = (tr(m)^2 - tr(m^2)) / (4 det U), are cos^2 and 1 + 2 cos^2 of twice a single angle.
bool is_diagonal_but_for_one_bit_gates(std::span<const Number> matrix) {
  static const Matrix4 b = bell();
  static const Matrix4 b_adjoint = adjoint(b);
  Matrix4 u;
  std::copy_n(matrix.begin(), 16, u.begin());
  const Matrix4 inner = times(b_adjoint, times(u, b));
  const Matrix4 m = times(transposed(inner), inner);
  Number trace = 0;
  Number square = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    trace += m[r * 5];
    for (std::size_t c = 0; c < 4; ++c) square += times(m[r * 4 + c], m[c * 4 + r]);
  }
  const Number scale = determinant(u);
  const Number t = trace * trace / (16.0 * scale);
  const Number s = (trace * trace - square) / (4.0 * scale);
  return std::abs(t.imag()) < 1e-9 && std::abs(s - (1.0 + 2.0 * t)) < 1e-9;
}

std::optional<TwoBitSplit> split_two_bits(std::span<const Number> matrix) {
  Matrix4 u;
  std::copy_n(matrix.begin(), 16, u.begin());
  if (distance(times(u, adjoint(u)), identity()) > 1e-9) return std::nullopt;
  const Number phase = std::pow(determinant(u), 0.25);
  for (Number& x : u) x /= phase;

  const Matrix4 b = bell();
  const Matrix4 inner = times(adjoint(b), times(u, b));
  const Matrix4 squared = times(transposed(inner), inner);
  const Matrix4 p = common_eigenvectors(squared);
  const Matrix4 eigenvalues = times(transposed(p), times(squared, p));
  std::array<double, 4> d;
  Matrix4 k = times(inner, p);
  for (std::size_t c = 0; c < 4; ++c) d[c] = std::arg(eigenvalues[c * 5]) / 2;
  for (std::size_t i = 0; i < 16; ++i) k[i] *= std::polar(1.0, -d[i % 4]);
  // What rounding leaves of eigenvectors that hardly differ in their eigenvalues.
  for (const Number& x : k) {
    if (std::abs(x.imag()) > 1e-13) return std::nullopt;
  }
  if (determinant(k).real() < 0) {
    d[0] += std::acos(-1.0);
    for (std::size_t r = 0; r < 4; ++r) k[r * 4] = -k[r * 4];
  }
  TwoBitSplit split;
  split.xx = (d[0] + d[1] - d[2] - d[3]) / 4;
  split.yy = (-d[0] + d[1] - d[2] + d[3]) / 4;
  split.zz = (d[0] - d[1] - d[2] + d[3]) / 4;
  const Number all = phase * std::polar(1.0, (d[0] + d[1] + d[2] + d[3]) / 4);
  const auto [before_low, before_high] = factors(times(b, times(transposed(p), adjoint(b))));
  const auto [after_low, after_high] = factors(times(b, times(k, adjoint(b))));
  split.before[0] = before_low;
  split.before[1] = before_high;
  split.after[0] = after_low;
  split.after[1] = after_high;
  for (Number& x : split.after[1]) x *= all;
  turn_to_z(split);
  return split;
}

}  // namespace onehop::quantum
