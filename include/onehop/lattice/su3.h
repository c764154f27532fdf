// SU(3) linear algebra: 3x3 complex matrices and colour vectors over a real number type R. With R = double they hold
// one site; with a SIMD vector type of the compiler they hold one site per lane.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>

namespace onehop::lattice::su3 {

template <class R>
struct Complex {
  R re{};
  R im{};

  friend inline Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
  friend inline Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
  friend inline Complex operator*(const Complex& a, const Complex& b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend inline Complex operator*(const R& s, const Complex& a) { return {s * a.re, s * a.im}; }
};

template <class R>
inline Complex<R> conj(const Complex<R>& a) {
  return {a.re, -a.im};
}

template <class R>
struct Vector {
  Complex<R> c[3];
};

template <class R>
struct Matrix {
  Complex<R> e[3][3];  // row, column

  [[nodiscard]] static Matrix one() {
    Matrix m{};
    for (int i = 0; i < 3; ++i) m.e[i][i].re = m.e[i][i].re + 1;
    return m;
  }
};

template <class R>
inline Matrix<R> operator+(const Matrix<R>& a, const Matrix<R>& b) {
  Matrix<R> m;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) m.e[i][j] = a.e[i][j] + b.e[i][j];
  }
  return m;
}

template <class R>
inline Matrix<R> operator*(const R& s, const Matrix<R>& a) {
  Matrix<R> m;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) m.e[i][j] = s * a.e[i][j];
  }
  return m;
}

template <class R>
inline Matrix<R> adjoint(const Matrix<R>& a) {
  Matrix<R> m;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) m.e[i][j] = conj(a.e[j][i]);
  }
  return m;
}

template <class R>
inline Matrix<R> operator*(const Matrix<R>& a, const Matrix<R>& b) {
  Matrix<R> m;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) m.e[i][j] = a.e[i][0] * b.e[0][j] + a.e[i][1] * b.e[1][j] + a.e[i][2] * b.e[2][j];
  }
  return m;
}

// a * adjoint(b), and adjoint(a) * b.
template <class R>
inline Matrix<R> times_adjoint(const Matrix<R>& a, const Matrix<R>& b) {
  return a * adjoint(b);
}
template <class R>
inline Matrix<R> adjoint_times(const Matrix<R>& a, const Matrix<R>& b) {
  return adjoint(a) * b;
}

// sum += a * v, and sum += adjoint(a) * v.
template <class R>
inline void add_product(Vector<R>& sum, const Matrix<R>& a, const Vector<R>& v) {
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) sum.c[i] = sum.c[i] + a.e[i][j] * v.c[j];
  }
}
template <class R>
inline void add_adjoint_product(Vector<R>& sum, const Matrix<R>& a, const Vector<R>& v) {
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) sum.c[i] = sum.c[i] + conj(a.e[j][i]) * v.c[j];
  }
}

// The real part of the trace.
template <class R>
inline R real_trace(const Matrix<R>& a) {
  return a.e[0][0].re + a.e[1][1].re + a.e[2][2].re;
}
// The real part of the trace of a * adjoint(b), computed without the full product.
template <class R>
inline R real_trace_times_adjoint(const Matrix<R>& a, const Matrix<R>& b) {
  R sum{};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) sum = sum + a.e[i][j].re * b.e[i][j].re + a.e[i][j].im * b.e[i][j].im;
  }
  return sum;
}

// Sets the third row of an SU(3) matrix from its first two, so that a link can be stored as 12 real numbers instead
// of 18.
template <class R>
inline void third_row(Matrix<R>& a) {
  for (int j = 0; j < 3; ++j) {
    const int k = (j + 1) % 3;
    const int l = (j + 2) % 3;
    a.e[2][j] = conj(a.e[0][k] * a.e[1][l] - a.e[0][l] * a.e[1][k]);
  }
}

// Projects a matrix close to SU(3) to SU(3): normalises the first row, orthonormalises the second to it, and computes
// the third from both. `root` is the square root function of R.
template <class R, class Root>
inline void reunitarise(Matrix<R>& a, const Root& root) {
  const auto normalise = [&](Complex<R>(&row)[3]) {
    R square{};
    for (const Complex<R>& z : row) square = square + (z.re * z.re + z.im * z.im);
    const R scale = 1 / root(square);
    for (Complex<R>& z : row) z = scale * z;
  };
  normalise(a.e[0]);
  Complex<R> along{};
  for (int j = 0; j < 3; ++j) along = along + conj(a.e[0][j]) * a.e[1][j];
  for (int j = 0; j < 3; ++j) a.e[1][j] = a.e[1][j] - along * a.e[0][j];
  normalise(a.e[1]);
  third_row(a);
}
inline void reunitarise(Matrix<double>& a) {
  reunitarise(a, [](double x) { return std::sqrt(x); });
}

// Measures the deviation from SU(3): the largest absolute value of any real or imaginary part in a * adjoint(a) - 1 and
// in the difference between the third row and the one that the first two determine. Infinite if `a` is not finite.
inline double deviation(const Matrix<double>& a) {
  const Matrix<double> product = times_adjoint(a, a);
  Matrix<double> other = a;
  third_row(other);
  double worst = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const double one = i == j ? 1 : 0;
      for (const double error : {product.e[i][j].re - one, product.e[i][j].im, a.e[i][j].re - other.e[i][j].re,
                                 a.e[i][j].im - other.e[i][j].im}) {
        worst = std::isfinite(error) ? std::max(worst, std::abs(error)) : HUGE_VAL;
      }
    }
  }
  return worst;
}

// The exponential of any matrix, to rounding: the Taylor series of a / 2^k, squared k times.
inline Matrix<double> exponential(const Matrix<double>& a) {
  double norm = 0;
  for (const auto& row : a.e) {
    for (const Complex<double>& z : row) norm += z.re * z.re + z.im * z.im;
  }
  norm = std::sqrt(norm);
  int halvings = 0;
  while (norm > 0.25 && halvings < 60) {
    norm /= 2;
    ++halvings;
  }
  const Matrix<double> small = std::ldexp(1.0, -halvings) * a;
  Matrix<double> sum = Matrix<double>::one();
  for (int n = 12; n >= 1; --n) sum = Matrix<double>::one() + (1.0 / n) * (small * sum);
  for (; halvings > 0; --halvings) sum = sum * sum;
  return sum;
}

// Convert from and to nine complex numbers in memory, row by row.
inline Matrix<double> load(const std::complex<double>* from) {
  Matrix<double> m;
  for (int i = 0; i < 9; ++i) m.e[i / 3][i % 3] = {from[i].real(), from[i].imag()};
  return m;
}
inline void store(std::complex<double>* to, const Matrix<double>& m) {
  for (int i = 0; i < 9; ++i) to[i] = {m.e[i / 3][i % 3].re, m.e[i / 3][i % 3].im};
}

}  // namespace onehop::lattice::su3
