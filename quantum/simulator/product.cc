// The product of the states of a circuit's parts.
#include <algorithm>
#include <bit>
#include <string>

#include "onehop/error.h"
#include "onehop/quantum/simulator.h"

namespace onehop::quantum {
namespace {

bool in_order(const std::vector<int>& qubits) {
  for (std::size_t i = 0; i < qubits.size(); ++i) {
    if (qubits[i] != static_cast<int>(i)) return false;
  }
  return true;
}

// Multiplies the first `size` amplitudes of a rank by each number, the first one last, in place.
template <typename T>
void multiply(std::span<std::complex<T>> local, std::size_t size, std::span<const std::complex<double>> numbers) {
  for (std::size_t i = numbers.size(); i-- > 0;) {
    const std::complex<T> number(numbers[i]);
    std::transform(local.begin(), local.begin() + static_cast<std::ptrdiff_t>(size),
                   local.begin() + static_cast<std::ptrdiff_t>(i * size), [&](std::complex<T> a) {
                     return std::complex<T>(a.real() * number.real() - a.imag() * number.imag(),
                                            a.real() * number.imag() + a.imag() * number.real());
                   });
  }
}

}  // namespace

std::unique_ptr<State> product_of(std::vector<StateFactor> factors, int qubits, std::uint64_t ones) {
  if (factors.empty()) return nullptr;
  const auto smaller = [](const auto& a, const auto& b) { return a.qubits.size() < b.qubits.size(); };
  std::iter_swap(factors.begin(), std::max_element(factors.begin(), factors.end(), smaller));
  State& largest = *factors[0].state;
  if (largest.qubits() == qubits && in_order(factors[0].qubits)) return std::move(factors[0].state);
  if (qubits > 62) {
    throw Error("the state of all " + std::to_string(qubits) +
                " qubits has too many amplitudes: expected at most 62 "
                "qubits; ask for counts, expectation values or data of some qubits instead");
  }
  const Precision precision = is_encoded(largest.precision()) ? Precision::single_precision : largest.precision();
  auto product =
      std::make_unique<State>(largest.group(), qubits, precision, StateOptions{.threads = largest.engine().threads});
  product->set_ranks_per_host(largest.ranks_per_host());
  const int local = largest.local_bits();
  const int more = qubits - largest.qubits();
  std::vector<int> bits(static_cast<std::size_t>(qubits), -1);
  for (std::size_t i = 0; i < factors[0].qubits.size(); ++i) {
    const int bit = largest.bits()[i];
    bits[static_cast<std::size_t>(factors[0].qubits[i])] = bit < local ? bit : bit + more;
  }
  int next = local;
  const auto fill = [&]<typename T>(std::span<std::complex<T>> amplitudes) {
    const std::size_t window = std::size_t{1} << largest.window_bits();
    std::vector<std::complex<T>> decoded;
    std::size_t size = 0;
    for (; size < std::size_t{1} << local; size += window) {
      const auto piece = largest.piece<T>(size, window, decoded);
      std::copy(piece.begin(), piece.end(), amplitudes.begin() + static_cast<std::ptrdiff_t>(size));
    }
    for (std::size_t f = 1; f < factors.size(); ++f) {
      const std::vector<std::complex<double>> numbers = factors[f].state->gather();
      multiply(amplitudes, size, std::span<const std::complex<double>>(numbers));
      size *= numbers.size();
      for (const int qubit : factors[f].qubits) bits[static_cast<std::size_t>(qubit)] = next++;
    }
    constexpr std::complex<double> one[] = {0, 1};
    for (int qubit = 0; qubit < qubits; ++qubit) {
      if ((ones >> qubit & 1U) == 0) continue;
      multiply(amplitudes, size, std::span<const std::complex<double>>(one));
      size *= 2;
      bits[static_cast<std::size_t>(qubit)] = next++;
    }
    std::fill(amplitudes.begin() + static_cast<std::ptrdiff_t>(size), amplitudes.end(), std::complex<T>(0));
  };
  if (precision == Precision::single_precision) {
    fill(product->local<float>());
  } else {
    fill(product->local<double>());
  }
  for (int& bit : bits) bit = bit < 0 ? next++ : bit;
  product->set_layout(std::move(bits), largest.flips() << more);
  return product;
}

}  // namespace onehop::quantum
