#include "onehop/lattice/clover.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "lattice/gauge/clover_leaves.h"
#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::lattice {

namespace {

using Number = std::complex<double>;
using Block = std::array<std::array<Number, 6>, 6>;

constexpr std::size_t dims = 4;
constexpr std::array<std::pair<int, int>, 6> planes{{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}};

// The upper right quarter of each gamma matrix. The lower left quarter is its adjoint, and the diagonal quarters are 0.
constexpr std::array<std::array<std::array<Number, 2>, 2>, dims> upper_right{{
    {{{Number(0, 0), Number(0, 1)}, {Number(0, 1), Number(0, 0)}}},
    {{{Number(0, 0), Number(-1, 0)}, {Number(1, 0), Number(0, 0)}}},
    {{{Number(0, 1), Number(0, 0)}, {Number(0, 0), Number(0, -1)}}},
    {{{Number(1, 0), Number(0, 0)}, {Number(0, 0), Number(1, 0)}}},
}};

// The entry of gamma_mu gamma_nu of a plane on spins s, t of the upper (0) or lower half.
Number product_entry(std::pair<int, int> plane, std::size_t half, std::size_t s, std::size_t t) {
  const auto& mu = upper_right[static_cast<std::size_t>(plane.first)];
  const auto& nu = upper_right[static_cast<std::size_t>(plane.second)];
  Number sum = 0;
  for (std::size_t u = 0; u < 2; ++u) {
    sum += half == 0 ? mu[s][u] * std::conj(nu[t][u]) : std::conj(mu[u][s]) * nu[u][t];
  }
  return sum;
}

void pack(const Block& block, double* to) {
  for (std::size_t i = 0; i < 6; ++i) {
    to[i] = block[i][i].real();
    for (std::size_t j = 0; j < i; ++j) {
      const std::size_t n = i * (i - 1) / 2 + j;
      to[6 + 2 * n] = block[i][j].real();
      to[7 + 2 * n] = block[i][j].imag();
    }
  }
}

Block unpack(const double* from) {
  Block block{};
  for (std::size_t i = 0; i < 6; ++i) {
    block[i][i] = from[i];
    for (std::size_t j = 0; j < i; ++j) {
      const std::size_t n = i * (i - 1) / 2 + j;
      block[i][j] = {from[6 + 2 * n], from[7 + 2 * n]};
      block[j][i] = std::conj(block[i][j]);
    }
  }
  return block;
}

// Gauss-Jordan elimination with partial pivoting. Returns false if the matrix is singular.
bool invert(Block a, Block& inverse) {
  inverse = {};
  for (std::size_t i = 0; i < 6; ++i) inverse[i][i] = 1;
  for (std::size_t column = 0; column < 6; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < 6; ++row) {
      if (std::norm(a[row][column]) > std::norm(a[pivot][column])) pivot = row;
    }
    if (!(std::norm(a[pivot][column]) > 1e-24)) return false;
    std::swap(a[pivot], a[column]);
    std::swap(inverse[pivot], inverse[column]);
    const Number scale = 1.0 / a[column][column];
    for (std::size_t j = 0; j < 6; ++j) {
      a[column][j] *= scale;
      inverse[column][j] *= scale;
    }
    for (std::size_t row = 0; row < 6; ++row) {
      if (row == column) continue;
      const Number factor = a[row][column];
      for (std::size_t j = 0; j < 6; ++j) {
        a[row][j] -= factor * a[column][j];
        inverse[row][j] -= factor * inverse[column][j];
      }
    }
  }
  return true;
}

}  // namespace

std::vector<Number> clover_leaves(const Gauge& gauge) {
  if (gauge.geometry().dims() != static_cast<int>(dims)) {
    throw BadInput("clover: expected a lattice of four directions, found " + std::to_string(gauge.geometry().dims()));
  }
  return detail::field_strength_matrices(gauge, planes);
}

std::vector<double> clover_blocks(std::span<const Number> strength, double weight) {
  constexpr std::size_t of_site = planes.size() * 9;
  if (!std::isfinite(weight)) throw BadInput("clover: expected a finite weight, found " + base::number_text(weight));
  if (strength.size() % of_site != 0) {
    throw BadInput("clover: expected a field strength of " + std::to_string(of_site) +
                   " complex numbers per site, found " + base::counted(strength.size(), "number"));
  }
  const std::size_t sites = strength.size() / of_site;
  std::vector<double> blocks(sites * clover_numbers);
  for (std::size_t site = 0; site < sites; ++site) {
    for (std::size_t half = 0; half < 2; ++half) {
      Block block{};
      for (std::size_t i = 0; i < 6; ++i) block[i][i] = 1;
      for (std::size_t p = 0; p < planes.size(); ++p) {
        for (std::size_t st = 0; st < 4; ++st) {
          const Number spin = product_entry(planes[p], half, st / 2, st % 2);
          if (spin == 0.0) continue;
          for (std::size_t cd = 0; cd < 9; ++cd)
            block[st / 2 * 3 + cd / 3][st % 2 * 3 + cd % 3] -= weight * spin * strength[site * of_site + p * 9 + cd];
        }
      }
      pack(block, blocks.data() + site * clover_numbers + half * clover_numbers / 2);
    }
  }
  return blocks;
}

std::vector<double> inverse_blocks(std::span<const double> blocks) {
  std::vector<double> found(blocks.size());
  constexpr std::size_t of_block = clover_numbers / 2;
  for (std::size_t n = 0; n < blocks.size() / of_block; ++n) {
    Block inverse;
    if (!invert(unpack(blocks.data() + n * of_block), inverse)) {
      throw Error("clover: expected invertible clover blocks, found a singular one at site " + std::to_string(n / 2) +
                  " of this rank; take another kappa or c_sw");
    }
    pack(inverse, found.data() + n * of_block);
  }
  return found;
}

std::vector<Number> whole_blocks(std::span<const double> blocks) {
  std::vector<Number> found;
  found.reserve(blocks.size());
  for (std::size_t n = 0; n < blocks.size() / (clover_numbers / 2); ++n) {
    for (const auto& row : unpack(blocks.data() + n * clover_numbers / 2))
      found.insert(found.end(), row.begin(), row.end());
  }
  return found;
}

}  // namespace onehop::lattice
