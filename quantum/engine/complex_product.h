// Arithmetic for loops over amplitudes.
#pragma once

#include <complex>
#include <cstddef>
#include <vector>

namespace onehop::quantum {

// Complex product without operator*'s handling of infinities, which is slow and prevents vectorisation.
template <typename T>
inline std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Walsh-Hadamard transform: values[z] = the sum over j of values[j] (-1)^parity(j & z), for all z.
template <typename Number>
void walsh_transform(std::vector<Number>& values) {
  for (std::size_t half = 1; half < values.size(); half *= 2) {
    for (std::size_t j = 0; j < values.size(); j += 2 * half) {
      for (std::size_t k = j; k < j + half; ++k) {
        const Number first = values[k];
        const Number second = values[k + half];
        values[k] = first + second;
        values[k + half] = first - second;
      }
    }
  }
}

}  // namespace onehop::quantum
