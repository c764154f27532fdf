// A two-bit unitary as one-bit gates around the one thing that cannot be taken apart: exp(i (xx X X + yy Y Y + zz Z Z)).
#pragma once

#include <array>
#include <complex>
#include <optional>
#include <span>

namespace onehop::quantum {

using Matrix2 = std::array<std::complex<double>, 4>;  // row-major

[[nodiscard]] Matrix2 product(const Matrix2& a, const Matrix2& b);

// [0] acts on the less significant bit. Where only one angle is not zero, it is zz, which is diagonal.
struct TwoBitSplit {
  Matrix2 before[2];
  Matrix2 after[2];
  double xx = 0, yy = 0, zz = 0;
};

// Nothing if the 16 numbers (row-major) are no unitary matrix within 1e-9, or if the parts would miss it by more than rounding.
[[nodiscard]] std::optional<TwoBitSplit> split_two_bits(std::span<const std::complex<double>> matrix);

// The same for gates of which only one angle is not zero, so that what is left is diagonal; nothing for others.
[[nodiscard]] std::optional<TwoBitSplit> split_one_angle(std::span<const std::complex<double>> matrix);

}  // namespace onehop::quantum
