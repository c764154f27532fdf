// The KAK (Cartan) decomposition of a two-bit unitary: one-bit gates before and after exp(i (xx X X + yy Y Y + zz Z
// Z)).
#pragma once

#include <array>
#include <complex>
#include <optional>
#include <span>

namespace onehop::quantum {

using Matrix2 = std::array<std::complex<double>, 4>;  // row-major

[[nodiscard]] Matrix2 product(const Matrix2& a, const Matrix2& b);

// Element [0] acts on the less significant bit. If only one angle is not zero, it is zz, so that the middle factor is
// diagonal.
struct KakDecomposition {
  Matrix2 before[2];
  Matrix2 after[2];
  double xx = 0, yy = 0, zz = 0;
};

// Decomposes a matrix of 16 numbers, row-major. Returns nullopt if it is not unitary within 1e-9, or if the factors
// would reproduce it with more than rounding errors.
[[nodiscard]] std::optional<KakDecomposition> kak_decomposition(std::span<const std::complex<double>> matrix);

// The same, but returns nullopt unless exactly one angle is needed, so that the middle factor is diagonal.
[[nodiscard]] std::optional<KakDecomposition> kak_one_angle(std::span<const std::complex<double>> matrix);

}  // namespace onehop::quantum
