// The decomposition works in the magic basis, the Bell states with suitable phases (Kraus and Cirac, 2001). There,
// one-bit gates of determinant 1 on both bits are real rotations, and X X, Y Y and Z Z are diagonal. With U' = K D P^T,
// where K and P are real rotations, U'^T U' = P D^2 P^T: its eigenvectors give P, its eigenvalues D, and K follows.
#include "quantum/engine/kak.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>

#include "quantum/engine/complex_product.h"

namespace onehop::quantum {
namespace {

using Number = std::complex<double>;
using Matrix4 = std::array<Number, 16>;
using Real4 = std::array<double, 16>;

Number over(Number a, Number b) { return times(a, std::conj(b)) / std::norm(b); }

Number times_i(Number a) { return {-a.imag(), a.real()}; }

// B^dagger u B, with the magic basis in the columns of B = 1 / sqrt(2) times
//   1  0  0  i
//   0  i  1  0
//   0  i -1  0
//   1  0  0 -i
Matrix4 in_bell_basis(const Matrix4& u) {
  Matrix4 columns;
  for (std::size_t r = 0; r < 16; r += 4) {
    columns[r] = u[r] + u[r + 3];
    columns[r + 1] = times_i(u[r + 1] + u[r + 2]);
    columns[r + 2] = u[r + 1] - u[r + 2];
    columns[r + 3] = times_i(u[r] - u[r + 3]);
  }
  Matrix4 result;
  for (std::size_t c = 0; c < 4; ++c) {
    result[c] = 0.5 * (columns[c] + columns[12 + c]);
    result[4 + c] = -0.5 * times_i(columns[4 + c] + columns[8 + c]);
    result[8 + c] = 0.5 * (columns[4 + c] - columns[8 + c]);
    result[12 + c] = -0.5 * times_i(columns[c] - columns[12 + c]);
  }
  return result;
}

// B m B^dagger for a real matrix m.
Matrix4 from_bell_basis(const Real4& m) {
  Matrix4 columns;
  for (std::size_t r = 0; r < 16; r += 4) {
    columns[r] = {m[r], -m[r + 3]};
    columns[r + 1] = {m[r + 2], -m[r + 1]};
    columns[r + 2] = {-m[r + 2], -m[r + 1]};
    columns[r + 3] = {m[r], m[r + 3]};
  }
  Matrix4 result;
  for (std::size_t c = 0; c < 4; ++c) {
    result[c] = 0.5 * (columns[c] + times_i(columns[12 + c]));
    result[4 + c] = 0.5 * (times_i(columns[4 + c]) + columns[8 + c]);
    result[8 + c] = 0.5 * (times_i(columns[4 + c]) - columns[8 + c]);
    result[12 + c] = 0.5 * (columns[c] - times_i(columns[12 + c]));
  }
  return result;
}

// m^T m.
Matrix4 squared(const Matrix4& m) {
  Matrix4 result;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = r; c < 4; ++c) {
      Number sum = 0;
      for (std::size_t k = 0; k < 4; ++k) sum += times(m[k * 4 + r], m[k * 4 + c]);
      result[r * 4 + c] = result[c * 4 + r] = sum;
    }
  }
  return result;
}

Matrix4 matrix_product(const Matrix4& a, const Real4& b) {
  Matrix4 result{};
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::size_t c = 0; c < 4; ++c) result[r * 4 + c] += a[r * 4 + k] * b[k * 4 + c];
    }
  }
  return result;
}

Real4 transposed(const Real4& a) {
  Real4 t;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 4; ++c) t[c * 4 + r] = a[r * 4 + c];
  }
  return t;
}

bool is_unitary(const Matrix4& u) {
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = a; b < 4; ++b) {
      Number sum = a == b ? -1 : 0;
      for (std::size_t k = 0; k < 4; ++k) sum += times(u[a * 4 + k], std::conj(u[b * 4 + k]));
      if (std::norm(sum) > 1e-18) return false;
    }
  }
  return true;
}

// The determinant of a real or complex matrix, by Laplace expansion in 2x2 minors.
template <typename N>
N determinant(const std::array<N, 16>& m) {
  const auto minor = [&](std::size_t row, std::size_t a, std::size_t b) {
    if constexpr (std::is_same_v<N, double>) {
      return m[row + a] * m[row + 4 + b] - m[row + b] * m[row + 4 + a];
    } else {
      return times(m[row + a], m[row + 4 + b]) - times(m[row + b], m[row + 4 + a]);
    }
  };
  const auto both = [&](std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
    if constexpr (std::is_same_v<N, double>) {
      return minor(0, a, b) * minor(8, c, d);
    } else {
      return times(minor(0, a, b), minor(8, c, d));
    }
  };
  return both(0, 1, 2, 3) - both(0, 2, 1, 3) + both(0, 3, 1, 2) + both(1, 2, 0, 3) - both(1, 3, 0, 2) +
         both(2, 3, 0, 1);
}

// The eigenvectors of a symmetric matrix, as columns, by Jacobi's method.
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
    if (off < 1e-14) break;
  }
  return v;
}

// Real eigenvectors and the eigenvalues of a symmetric unitary matrix. Its real and imaginary parts commute, so the
// eigenvectors of almost every linear combination of the two diagonalise both.
struct Eigen {
  Real4 vectors;  // as columns
  std::array<Number, 4> values;
};

Eigen common_eigenvectors(const Matrix4& symmetric) {
  Eigen best{};
  double least = 1e300;
  for (const double angle : {0.6180339887, 1.9021130326, 2.7182818285, 0.1234567891}) {
    Real4 combination;
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    for (std::size_t i = 0; i < 16; ++i) combination[i] = c * symmetric[i].real() + s * symmetric[i].imag();
    const Real4 v = eigenvectors(combination);
    const Matrix4 image = matrix_product(symmetric, v);
    double off = 0;
    Eigen found{v, {}};
    for (std::size_t a = 0; a < 4; ++a) {
      for (std::size_t b = a; b < 4; ++b) {
        Number sum = 0;
        for (std::size_t k = 0; k < 4; ++k) sum += image[k * 4 + b] * v[k * 4 + a];
        if (a == b) found.values[a] = sum;
        if (a != b) off = std::max(off, std::norm(sum));
      }
    }
    if (off < least) {
      least = off;
      best = found;
    }
    if (least < 1e-27) break;
  }
  return best;
}

// The same for a matrix with two eigenvalues of multiplicity 2, from the projectors onto their spaces; the first
// eigenvalue gets columns 0 and 3. Returns nullopt if the eigenvalues are too close for this, or if there are more.
std::optional<Eigen> eigenvectors_of_two(const Matrix4& symmetric, Number trace, Number trace_of_square) {
  const Number difference = std::sqrt(trace_of_square - 0.25 * times(trace, trace));
  if (std::norm(difference) < 1e-2) return std::nullopt;
  const Number first = 0.25 * trace + 0.5 * difference;
  const Number second = 0.25 * trace - 0.5 * difference;
  const Number scale = over(1.0, difference);
  Real4 onto[2];
  for (std::size_t i = 0; i < 16; ++i) {
    const double one = i % 5 == 0 ? 1 : 0;
    const Number entry = times(symmetric[i] - one * second, scale);
    if (std::abs(entry.imag()) > 1e-13) return std::nullopt;
    onto[0][i] = entry.real();
    onto[1][i] = one - entry.real();
  }
  Eigen result{{}, {first, second, second, first}};
  constexpr std::size_t columns[2][2] = {{0, 3}, {1, 2}};
  for (std::size_t p = 0; p < 2; ++p) {
    for (const std::size_t column : columns[p]) {
      std::size_t big = 0;
      for (std::size_t i = 1; i < 4; ++i) big = onto[p][i * 5] > onto[p][big * 5] ? i : big;
      const double length = onto[p][big * 5];  // the squared length of column `big`
      if (length < 0.2) return std::nullopt;
      double vector[4];
      for (std::size_t i = 0; i < 4; ++i) vector[i] = onto[p][i * 4 + big] / std::sqrt(length);
      for (std::size_t i = 0; i < 4; ++i) {
        result.vectors[i * 4 + column] = vector[i];
        for (std::size_t j = 0; j < 4; ++j) onto[p][i * 4 + j] -= vector[i] * vector[j];
      }
    }
  }
  if (determinant(result.vectors) < 0) {
    for (std::size_t i = 0; i < 16; i += 4) result.vectors[i] = -result.vectors[i];
  }
  return result;
}

// Factorises m = high x low, both of determinant 1, and returns {low, high}.
std::pair<Matrix2, Matrix2> factors(const Matrix4& m) {
  std::size_t big = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    if (std::norm(m[i]) > std::norm(m[big])) big = i;
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
  const Number scale = over(1.0, std::sqrt(times(low[0], low[3]) - times(low[1], low[2])));
  for (Number& x : low) x = times(x, scale);
  const Number other = over(1.0, low[(row % 2) * 2 + column % 2]);
  for (Number& x : high) x = times(x, other);
  return {low, high};
}

// If only xx or only yy is not zero, changes the basis so that zz is the only angle: W Z W^-1 is the original axis.
void turn_to_z(KakDecomposition& kak) {
  constexpr double nothing = 1e-13;
  const bool x = std::abs(kak.xx) > nothing;
  const bool y = std::abs(kak.yy) > nothing;
  if (std::abs(kak.zz) > nothing || x == y) return;
  const double h = std::sqrt(0.5);
  const Number i(0, h);
  const Matrix2 turn = x ? Matrix2{h, h, h, -h} : Matrix2{h, i, i, h};
  const Matrix2 back = x ? turn : Matrix2{h, -i, -i, h};
  for (int b = 0; b < 2; ++b) {
    kak.after[b] = product(kak.after[b], turn);
    kak.before[b] = product(back, kak.before[b]);
  }
  kak.zz = x ? kak.xx : kak.yy;
  kak.xx = kak.yy = 0;
}

// A gate in the magic basis (`inner` = U'), m = U'^T U', and the traces of m and of its square.
struct InBellBasis {
  explicit InBellBasis(std::span<const Number> matrix) {
    std::copy_n(matrix.begin(), 16, gate.begin());
    inner = in_bell_basis(gate);
    m = squared(inner);
    for (std::size_t i = 0; i < 16; i += 5) trace += m[i];
    for (const Number& x : m) square += times(x, x);  // it is symmetric
  }

  // m has the same eigenvalues as the square of the gate's diagonal part. Its invariants under one-bit gates, t =
  // tr(m)^2 / (16 det U) and s = (tr(m)^2 - tr(m^2)) / (4 det U), are cos^2 and 1 + 2 cos^2 of twice a single angle.
  [[nodiscard]] bool one_angle() const {
    const Number scale = over(1.0, determinant(gate));
    const Number t = times(trace, times(trace, scale)) / 16.0;
    const Number s = times(times(trace, trace) - square, scale) / 4.0;
    return std::abs(t.imag()) < 1e-9 && std::norm(s - (1.0 + 2.0 * t)) < 1e-18;
  }

  Matrix4 gate, inner, m;
  Number trace, square;
};

std::optional<KakDecomposition> kak_from_eigenvectors(const InBellBasis& bell, const Eigen& eigen) {
  std::array<double, 4> d;
  const Matrix4 turned = matrix_product(bell.inner, eigen.vectors);
  Real4 k;
  for (std::size_t c = 0; c < 4; ++c) {
    d[c] = std::arg(eigen.values[c]) / 2;
    const Number back = std::polar(1.0, -d[c]);
    for (std::size_t i = c; i < 16; i += 4) {
      const Number x = times(turned[i], back);
      // Rounding has mixed the eigenvectors of nearly equal eigenvalues.
      if (std::abs(x.imag()) > 1e-13) return std::nullopt;
      k[i] = x.real();
    }
  }
  if (determinant(k) < 0) {
    d[0] += std::acos(-1.0);
    for (std::size_t r = 0; r < 16; r += 4) k[r] = -k[r];
  }
  KakDecomposition kak;
  kak.xx = (d[0] + d[1] - d[2] - d[3]) / 4;
  kak.yy = (-d[0] + d[1] - d[2] + d[3]) / 4;
  kak.zz = (d[0] - d[1] - d[2] + d[3]) / 4;
  const Number all = std::polar(1.0, (d[0] + d[1] + d[2] + d[3]) / 4);
  std::tie(kak.before[0], kak.before[1]) = factors(from_bell_basis(transposed(eigen.vectors)));
  std::tie(kak.after[0], kak.after[1]) = factors(from_bell_basis(k));
  for (Number& x : kak.after[1]) x = times(x, all);
  turn_to_z(kak);
  return kak;
}

std::optional<KakDecomposition> kak_of(const InBellBasis& bell, bool one_angle) {
  if (!is_unitary(bell.gate)) return std::nullopt;
  if (one_angle) {
    if (const auto eigen = eigenvectors_of_two(bell.m, bell.trace, bell.square)) {
      if (const auto kak = kak_from_eigenvectors(bell, *eigen)) return kak;
    }
  }
  return kak_from_eigenvectors(bell, common_eigenvectors(bell.m));
}

}  // namespace

Matrix2 product(const Matrix2& a, const Matrix2& b) {
  return {times(a[0], b[0]) + times(a[1], b[2]), times(a[0], b[1]) + times(a[1], b[3]),
          times(a[2], b[0]) + times(a[3], b[2]), times(a[2], b[1]) + times(a[3], b[3])};
}

std::optional<KakDecomposition> kak_decomposition(std::span<const Number> matrix) {
  const InBellBasis bell(matrix);
  return kak_of(bell, bell.one_angle());
}

std::optional<KakDecomposition> kak_one_angle(std::span<const Number> matrix) {
  const InBellBasis bell(matrix);
  if (!bell.one_angle()) return std::nullopt;
  return kak_of(bell, true);
}

}  // namespace onehop::quantum
