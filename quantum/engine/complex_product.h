// The product of complex numbers for loops.
#pragma once

#include <complex>

namespace onehop::quantum {

// Complex product without operator*'s handling of infinities, which is slow and prevents vectorisation.
template <typename T>
inline std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace onehop::quantum
