#include "quantum/simulator/kraus.h"

#include <algorithm>
#include <cmath>

namespace onehop::quantum {
namespace {

constexpr double negligible = 1e-14;

bool is_diagonal_matrix(std::span<const Complex> m, std::size_t size, double tolerance) {
  for (std::size_t i = 0; i < m.size(); ++i) {
    if (i % (size + 1) != 0 && std::abs(m[i]) > tolerance) return false;
  }
  return true;
}

// m^dagger m.
std::vector<Complex> product_of(std::span<const Complex> m, std::size_t size) {
  std::vector<Complex> product(m.size());
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = 0; c < size; ++c) {
      for (std::size_t k = 0; k < size; ++k) product[r * size + c] += std::conj(m[k * size + r]) * m[k * size + c];
    }
  }
  return product;
}

void keep_diagonal(std::vector<Complex>& matrix, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) matrix[i] = matrix[i * (size + 1)];
  matrix.resize(size);
}

bool is_identity(const Operation& operation) {
  return operation.kind == OperationKind::diagonal &&
         std::all_of(operation.values.begin(), operation.values.end(),
                     [](Complex value) { return std::abs(value - 1.0) <= negligible; });
}

}  // namespace

Operation kraus_operation(std::vector<Complex> matrix, std::size_t size, double tolerance) {
  Operation operation;
  operation.name = "kraus";
  operation.kind = OperationKind::matrix;
  if (is_diagonal_matrix(matrix, size, tolerance)) {
    operation.kind = OperationKind::diagonal;
    keep_diagonal(matrix, size);
  }
  operation.values = std::move(matrix);
  return operation;
}

KrausOperators::KrausOperators(const Channel& channel) : probabilities(channel.probabilities) {
  const auto size =
      static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(channel.operators.front().size()))));
  double best = -1;
  for (std::size_t k = 0; k < channel.operators.size(); ++k) {
    std::vector<Complex> matrix = channel.operators[k];
    products.push_back(product_of(matrix, size));
    diagonal = diagonal && is_diagonal_matrix(products.back(), size, negligible);
    double trace = 0;
    for (std::size_t i = 0; i < size; ++i) trace += products.back()[i * (size + 1)].real();
    if (trace > best) best = trace, usual = static_cast<std::uint32_t>(k);
    if (!probabilities.empty() && probabilities[k] > 0) {
      for (Complex& value : matrix) value /= std::sqrt(probabilities[k]);
    }
    operators.push_back(kraus_operation(std::move(matrix), size));
    does_nothing.push_back(is_identity(operators.back()));
  }
  if (!diagonal) return;
  for (auto& product : products) keep_diagonal(product, size);
}

Operation KrausOperators::on(std::vector<int> targets, std::size_t which) const {
  Operation result = operators[which];
  result.targets = std::move(targets);
  return result;
}

std::vector<double> KrausOperators::weights(State& state, std::span<const int> targets) const {
  std::vector<double> result;
  if (diagonal) {
    const std::vector<double> chances = state.probabilities(targets);
    for (const auto& product : products) {
      double sum = 0;
      for (std::size_t i = 0; i < chances.size(); ++i) sum += product[i].real() * chances[i];
      result.push_back(std::max(0.0, sum));
    }
    return result;
  }
  const std::vector<Complex> rho = state.reduced_density_matrix(targets);
  const std::size_t size = std::size_t{1} << targets.size();
  for (const auto& product : products) {  // the trace of K^dagger K rho
    double sum = 0;
    for (std::size_t r = 0; r < size; ++r) {
      for (std::size_t c = 0; c < size; ++c) sum += (product[r * size + c] * rho[c * size + r]).real();
    }
    result.push_back(std::max(0.0, sum));
  }
  return result;
}

std::uint32_t other_operator(std::span<const double> weights, std::uint32_t usual, double number) {
  std::uint32_t chosen = usual;
  for (std::uint32_t k = 0; k < weights.size() && number >= 0; ++k) {
    if (k == usual || weights[k] <= 0) continue;
    number -= weights[k];
    chosen = k;
  }
  return chosen;
}

const Channel& reset_channel() {
  static const Channel channel{"reset", {{1, 0, 0, 0}, {0, 1, 0, 0}}, {}};
  return channel;
}

}  // namespace onehop::quantum
