// Applies one operation directly to the amplitudes in memory, for operations that do not fit a tile, such as matrices
// on many bits. The tests of tiles use it as the reference.
#pragma once

#include <complex>
#include <span>

#include "onehop/quantum/engine.h"

namespace onehop::quantum {

// Throws BadInput, naming operation `index`, if the operation is invalid for 2^bits amplitudes.
void check_operation(const LocalOperation& operation, std::size_t index, int bits);

template <typename T>
void apply_directly(std::span<std::complex<T>> amplitudes, const LocalOperation& operation, int threads);

extern template void apply_directly<float>(std::span<std::complex<float>>, const LocalOperation&, int);
extern template void apply_directly<double>(std::span<std::complex<double>>, const LocalOperation&, int);

}  // namespace onehop::quantum
