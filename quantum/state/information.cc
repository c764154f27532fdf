// Fidelities and entanglement entropies of states.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/state.h"
#include "quantum/state/state_impl.h"

namespace onehop::quantum {
namespace {

// A symmetric matrix with three diagonals.
struct Tridiagonal {
  std::vector<double> diagonal;
  std::vector<double> beside;  // beside[i] is entry (i, i + 1)
};

// Householder reflections make a symmetric matrix, row-major, tridiagonal; its eigenvalues stay.
Tridiagonal tridiagonal(std::vector<double> a, std::size_t size) {
  Tridiagonal result{std::vector<double>(size), std::vector<double>(size)};
  std::vector<double> v(size);
  std::vector<double> w(size);
  for (std::size_t k = 0; k + 2 < size; ++k) {
    double norm = 0;
    for (std::size_t i = k + 1; i < size; ++i) norm += a[i * size + k] * a[i * size + k];
    norm = std::sqrt(norm);
    result.beside[k] = a[(k + 1) * size + k] > 0 ? -norm : norm;
    if (norm == 0) continue;
    for (std::size_t i = k + 1; i < size; ++i) v[i] = a[i * size + k];
    v[k + 1] -= result.beside[k];
    double square = 0;
    for (std::size_t i = k + 1; i < size; ++i) square += v[i] * v[i];
    double product = 0;
    for (std::size_t i = k + 1; i < size; ++i) {
      double sum = 0;
      for (std::size_t j = k + 1; j < size; ++j) sum += a[i * size + j] * v[j];
      w[i] = 2 / square * sum;
      product += v[i] * w[i];
    }
    for (std::size_t i = k + 1; i < size; ++i) w[i] -= product / square * v[i];
    for (std::size_t i = k + 1; i < size; ++i) {
      for (std::size_t j = k + 1; j < size; ++j) a[i * size + j] -= v[i] * w[j] + w[i] * v[j];
    }
  }
  for (std::size_t i = 0; i < size; ++i) result.diagonal[i] = a[i * size + i];
  if (size > 1) result.beside[size - 2] = a[(size - 1) * size + size - 2];
  return result;
}

// The number of eigenvalues below x: Sturm's sequence.
std::size_t below(const Tridiagonal& t, double x) {
  std::size_t count = 0;
  double pivot = 1;
  for (std::size_t i = 0; i < t.diagonal.size(); ++i) {
    const double square = i > 0 ? t.beside[i - 1] * t.beside[i - 1] : 0;
    pivot = t.diagonal[i] - x - square / pivot;
    if (pivot == 0) pivot = 1e-300;
    if (pivot < 0) ++count;
  }
  return count;
}

// The eigenvalues of a density matrix of `size` rows, each from 0 to 1, by bisection.
std::vector<double> eigenvalues(const std::vector<std::complex<double>>& matrix, std::size_t size) {
  // A + iB has the eigenvalues of [[A, -B], [B, A]], where each occurs twice.
  const std::size_t rows = 2 * size;
  std::vector<double> real(rows * rows);
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = 0; c < size; ++c) {
      const std::complex<double> entry = matrix[r * size + c];
      real[r * rows + c] = real[(r + size) * rows + c + size] = entry.real();
      real[(r + size) * rows + c] = entry.imag();
      real[r * rows + c + size] = -entry.imag();
    }
  }
  const Tridiagonal t = tridiagonal(std::move(real), rows);
  std::vector<double> found;
  for (std::size_t k = 0; k < size; ++k) {
    double low = -1e-12;
    double high = 1 + 1e-12;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (below(t, middle) > 2 * k ? high : low) = middle;
    }
    found.push_back(std::clamp((low + high) / 2, 0.0, 1.0));
  }
  return found;
}

}  // namespace

double State::fidelity(State& other) { return std::norm(inner_product(other)); }

double State::entropy(std::span<const int> qubits) {
  impl_->check_distinct(qubits);
  // Both sides of the cut have the same entropy.
  std::vector<int> side(qubits.begin(), qubits.end());
  if (2 * static_cast<int>(side.size()) > impl_->qubits) {
    side.clear();
    for (int qubit = 0; qubit < impl_->qubits; ++qubit) {
      if (std::find(qubits.begin(), qubits.end(), qubit) == qubits.end()) side.push_back(qubit);
    }
  }
  if (side.empty()) return 0;
  if (side.size() > 10) {
    throw BadInput("entropy: expected at most 10 qubits on the smaller side of the cut, found " +
                   std::to_string(side.size()));
  }
  double sum = 0;
  for (const double p : eigenvalues(reduced_density_matrix(side), std::size_t{1} << side.size())) {
    if (p > 0) sum -= p * std::log2(p);
  }
  return sum;
}

}  // namespace onehop::quantum
