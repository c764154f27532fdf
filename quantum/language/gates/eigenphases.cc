// Eigenvectors of a unitary matrix U: those of the Hermitian matrix cos(a) (U + U^+)/2 + sin(a) (U - U^+)/2i, by
// reflections to a tridiagonal matrix and implicit shifts. For a generic a, equal eigenvalues of this matrix are equal
// eigenvalues of U.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "onehop/error.h"
#include "quantum/language/gates/gates.h"

namespace onehop::quantum::language {
namespace {

constexpr double generic_angle = 0.6180339887498949;

class Tridiagonal {
 public:
  // `rows` become the eigenvectors, complex conjugated.
  Tridiagonal(std::vector<Complex> hermitian, std::size_t size)
      : size_(size), matrix_(std::move(hermitian)), rows_(size * size, 0), diagonal_(size), beside_(size, 0) {
    for (std::size_t k = 0; k < size_; ++k) rows_[k * size_ + k] = 1;
    for (std::size_t k = 0; k + 2 < size_; ++k) reflect(k);
    make_real();
    for (std::size_t k = 0; k < size_; ++k) diagonalize(k);
  }
  [[nodiscard]] const std::vector<Complex>& rows() const noexcept { return rows_; }

 private:
  [[nodiscard]] Complex& at(std::size_t row, std::size_t column) { return matrix_[row * size_ + column]; }

  // Makes column k zero below the entry under the diagonal.
  void reflect(std::size_t k) {
    std::vector<Complex> v(size_, 0);
    double norm = 0;
    for (std::size_t i = k + 1; i < size_; ++i) {
      v[i] = at(i, k);
      norm += std::norm(v[i]);
    }
    norm = std::sqrt(norm);
    if (norm < std::numeric_limits<double>::min()) return;
    v[k + 1] += std::polar(norm, std::arg(v[k + 1]));
    double length = 0;
    for (const Complex value : v) length += std::norm(value);
    for (Complex& value : v) value /= std::sqrt(length);
    std::vector<Complex> w(size_, 0);
    Complex overlap = 0;
    for (std::size_t i = k; i < size_; ++i) {
      for (std::size_t j = k + 1; j < size_; ++j) w[i] += at(i, j) * v[j];
      overlap += std::conj(v[i]) * w[i];
    }
    for (std::size_t i = k; i < size_; ++i) w[i] -= overlap * v[i];
    for (std::size_t i = k; i < size_; ++i) {
      for (std::size_t j = k; j < size_; ++j) at(i, j) -= 2.0 * (v[i] * std::conj(w[j]) + w[i] * std::conj(v[j]));
    }
    std::vector<Complex> sums(size_, 0);
    for (std::size_t i = k + 1; i < size_; ++i) {
      for (std::size_t j = 0; j < size_; ++j) sums[j] += std::conj(v[i]) * rows_[i * size_ + j];
    }
    for (std::size_t i = k + 1; i < size_; ++i) {
      for (std::size_t j = 0; j < size_; ++j) rows_[i * size_ + j] -= 2.0 * v[i] * sums[j];
    }
  }

  void make_real() {
    Complex phase = 1;
    for (std::size_t k = 0; k < size_; ++k) {
      diagonal_[k] = at(k, k).real();
      if (k + 1 == size_) break;
      const Complex below = at(k + 1, k) * phase;
      beside_[k] = std::abs(below);
      phase = beside_[k] > 0 ? below / beside_[k] : 1;
      for (std::size_t j = 0; j < size_; ++j) rows_[(k + 1) * size_ + j] *= std::conj(phase);
    }
  }

  // Turns rows `i` and `i + 1` against each other.
  void turn(std::size_t i, double cosine, double sine) {
    Complex* const upper = &rows_[i * size_];
    Complex* const lower = upper + size_;
    for (std::size_t j = 0; j < size_; ++j) {
      const Complex one = lower[j];
      lower[j] = sine * upper[j] + cosine * one;
      upper[j] = cosine * upper[j] - sine * one;
    }
  }

  void diagonalize(std::size_t first) {
    for (int round = 0;; ++round) {
      std::size_t last = first;
      while (last + 1 < size_) {
        const double scale = std::abs(diagonal_[last]) + std::abs(diagonal_[last + 1]);
        if (std::abs(beside_[last]) <= std::numeric_limits<double>::epsilon() * scale ||
            std::abs(beside_[last]) < 1e-300) {
          break;
        }
        ++last;
      }
      if (last == first) return;
      if (round > 200) throw BadInput("expected a gate with a unitary matrix, found one without eigenvalues");
      sweep(first, last);
    }
  }

  // One step with an implicit shift, from the end of a block to its begin.
  void sweep(std::size_t first, std::size_t last) {
    const double half = (diagonal_[first + 1] - diagonal_[first]) / (2 * beside_[first]);
    double bulge =
        diagonal_[last] - diagonal_[first] + beside_[first] / (half + std::copysign(std::hypot(half, 1.0), half));
    double sine = 1;
    double cosine = 1;
    double moved = 0;
    for (std::size_t i = last; i-- > first;) {
      const double outside = sine * beside_[i];
      const double inside = cosine * beside_[i];
      const double length = std::hypot(outside, bulge);
      beside_[i + 1] = length;
      if (length == 0) {
        diagonal_[i + 1] -= moved;
        beside_[last] = 0;
        return;
      }
      sine = outside / length;
      cosine = bulge / length;
      const double shifted = diagonal_[i + 1] - moved;
      const double change = (diagonal_[i] - shifted) * sine + 2 * cosine * inside;
      moved = sine * change;
      diagonal_[i + 1] = shifted + moved;
      bulge = cosine * change - inside;
      turn(i, cosine, sine);
    }
    diagonal_[first] -= moved;
    beside_[first] = bulge;
    beside_[last] = 0;
  }

  std::size_t size_;
  std::vector<Complex> matrix_;
  std::vector<Complex> rows_;
  std::vector<double> diagonal_;
  std::vector<double> beside_;
};

}  // namespace

std::vector<double> eigenphases(const std::vector<Complex>& matrix, std::vector<Complex>& vectors) {
  const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(matrix.size()))));
  const Complex factor = std::polar(0.5, -generic_angle);
  std::vector<Complex> hermitian(matrix.size());
  for (std::size_t row = 0; row < size; ++row) {
    for (std::size_t column = 0; column < size; ++column) {
      hermitian[row * size + column] =
          factor * matrix[row * size + column] + std::conj(factor * matrix[column * size + row]);
    }
  }
  const Tridiagonal found(std::move(hermitian), size);
  vectors.assign(matrix.size(), 0);
  std::vector<double> phases(size);
  for (std::size_t k = 0; k < size; ++k) {
    for (std::size_t j = 0; j < size; ++j) vectors[j * size + k] = std::conj(found.rows()[k * size + j]);
  }
  std::vector<Complex> images(matrix.size(), 0);
  for (std::size_t row = 0; row < size; ++row) {
    for (std::size_t k = 0; k < size; ++k) {
      const Complex one = matrix[row * size + k];
      if (one == 0.0) continue;
      for (std::size_t c = 0; c < size; ++c) images[row * size + c] += one * vectors[k * size + c];
    }
  }
  for (std::size_t k = 0; k < size; ++k) {
    Complex value = 0;
    for (std::size_t j = 0; j < size; ++j) value += std::conj(vectors[j * size + k]) * images[j * size + k];
    phases[k] = std::arg(value);
    if (phases[k] < -std::numbers::pi + 1e-9) phases[k] = std::numbers::pi;
  }
  return phases;
}

}  // namespace onehop::quantum::language
