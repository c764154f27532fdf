// What tests of the engine share: the definition of every operation, amplitude by amplitude, and random operations.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "onehop/quantum/engine.h"

namespace onehop::quantum::testing {

using Complex = std::complex<double>;
using Amplitudes = std::vector<Complex>;
using Random = std::mt19937_64;

// The numbers that each basis state |j> sends to the others.
[[nodiscard]] Amplitudes by_definition(const Amplitudes& in, const LocalOperation& op);
// One operation after the other; `most` becomes the largest absolute value on the way, at least 1.
[[nodiscard]] Amplitudes by_definition(Amplitudes state, const std::vector<LocalOperation>& operations, double& most);

[[nodiscard]] int number(Random& random, int low, int high);
[[nodiscard]] double real(Random& random);
[[nodiscard]] Complex complex(Random& random);
[[nodiscard]] std::vector<int> shuffled(Random& random, int count);
[[nodiscard]] std::vector<Complex> random_unitary(Random& random, std::size_t size);
[[nodiscard]] Amplitudes random_state(Random& random, int bits);
[[nodiscard]] std::uint64_t mask_of(const std::vector<int>& bits);
// The gates that circuits are made of, with the special values that a fast path may single out.
[[nodiscard]] std::vector<Complex> one_bit_gate(Random& random);
// Of any kind, on any bits.
[[nodiscard]] LocalOperation random_operation(Random& random, int bits, int max_bits = 5);

template <typename T>
std::vector<std::complex<T>> as(const Amplitudes& state) {
  return {state.begin(), state.end()};
}

template <typename T>
double distance(const Amplitudes& expected, const std::vector<std::complex<T>>& found) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(expected[i] - Complex(found[i])));
  return worst;
}

}  // namespace onehop::quantum::testing
