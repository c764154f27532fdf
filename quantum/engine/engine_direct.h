// One operation straight on the amplitudes in memory: for what the tiles of engine_tile cannot take (matrices and
// tables of many bits), and the plain definition that the tests of the tiles rest on.
#pragma once

#include <complex>
#include <span>

#include "onehop/quantum/engine.h"

namespace onehop::quantum {

// Throws BadInput, naming operation `index`, if it does not make sense on 2^bits amplitudes.
void check_operation(const LocalOperation& operation, std::size_t index, int bits);

template <typename T>
void apply_directly(std::span<std::complex<T>> amplitudes, const LocalOperation& operation, int threads);

extern template void apply_directly<float>(std::span<std::complex<float>>, const LocalOperation&, int);
extern template void apply_directly<double>(std::span<std::complex<double>>, const LocalOperation&, int);

}  // namespace onehop::quantum
