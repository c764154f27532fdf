// The clover term of Wilson quarks: the field strength of a gauge field from the four leaves around each site, and the Hermitian blocks
//
//   A(x) = 1 - weight * sum over mu < nu of gamma_mu gamma_nu F_mu,nu(x),   F = (Q - adjoint(Q)) / 8,
//
// with Q the sum of the four plaquettes that begin at x and go around the plane (mu, nu) in the same sense. With weight = kappa * c_sw
// this is 1 + kappa c_sw / 2 * i sigma F summed over all mu, nu. In the basis of docs/reference/lattice_wilson.md A is two blocks of 6x6 a site.
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "onehop/lattice/gauge.h"

namespace onehop::lattice {

// Of this rank's block in lexicographic order: [site][plane][row][column], planes (x,y), (x,z), (x,t), (y,z), (y,t), (z,t). Anti-Hermitian.
// Collective. Throws BadInput unless there are four directions.
[[nodiscard]] std::vector<std::complex<double>> clover_leaves(const Gauge& gauge);

// Real numbers of a site's two blocks: of each 6 of the diagonal, then the 15 complex ones below it, row by row.
inline constexpr std::size_t clover_numbers = 72;

// The blocks A of every site, from a field strength.
[[nodiscard]] std::vector<double> clover_blocks(std::span<const std::complex<double>> leaves, double weight);

// Their inverses. Throws Error naming the site in the block whose A is singular.
[[nodiscard]] std::vector<double> inverse_blocks(std::span<const double> blocks);

// Whole matrices of blocks: [site][half][row][column], 2 * 36 complex numbers; row 3 * spin + colour of the half's two spins.
[[nodiscard]] std::vector<std::complex<double>> whole_blocks(std::span<const double> blocks);

}  // namespace onehop::lattice
