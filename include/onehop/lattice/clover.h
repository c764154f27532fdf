// The clover term of Wilson quarks (Sheikholeslami and Wohlert, 1985):
//
//   A(x) = 1 - weight * sum over mu < nu of gamma_mu gamma_nu F_mu,nu(x),   F = (Q - adjoint(Q)) / 8,
//
// where Q is the sum of the four plaquettes that begin at x and go around the plane (mu, nu) in the same sense. With
// weight = kappa * c_sw, A is 1 + kappa c_sw / 2 * i sigma F, summed over all mu, nu. In the basis of
// docs/reference/lattice_wilson.md it is two Hermitian 6x6 blocks per site.
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "onehop/lattice/gauge.h"

namespace onehop::lattice {

// Returns the field strength F, which is anti-Hermitian, on this rank's block in lexicographic order:
// [site][plane][row][column], with the planes (x,y), (x,z), (x,t), (y,z), (y,t), (z,t). Collective. Throws BadInput
// unless there are four directions.
[[nodiscard]] std::vector<std::complex<double>> clover_leaves(const Gauge& gauge);

// Real numbers per site: for each of the two blocks 6 diagonal entries, then the 15 complex entries below the diagonal,
// row by row.
inline constexpr std::size_t clover_numbers = 72;

// Returns the blocks of A for every site, clover_numbers each, from the result of clover_leaves(). Throws BadInput for
// another length.
[[nodiscard]] std::vector<double> clover_blocks(std::span<const std::complex<double>> leaves, double weight);

// Returns the inverse of every block. Throws Error if a block is singular; the message names its site.
[[nodiscard]] std::vector<double> inverse_blocks(std::span<const double> blocks);

// Returns the blocks as full matrices, [site][half][row][column]: rows and columns are 3 * spin + colour, with the two
// spins of a half.
[[nodiscard]] std::vector<std::complex<double>> whole_blocks(std::span<const double> blocks);

}  // namespace onehop::lattice
