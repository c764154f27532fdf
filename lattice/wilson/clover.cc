#include "onehop/lattice/clover.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "onehop/error.h"
#include "onehop/lattice/su3.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "src/base/text.h"

namespace onehop::lattice {

namespace {

using Number = std::complex<double>;
using Link = su3::Matrix<double>;
using Block = std::array<std::array<Number, 6>, 6>;

constexpr std::size_t dims = 4;
constexpr std::array<std::pair<std::size_t, std::size_t>, 6> planes{{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}};

// The links of this rank's block and of one layer of sites around it, including edges and corners.
class Surroundings {
 public:
  explicit Surroundings(const Gauge& gauge) {
    const Geometry& geometry = gauge.geometry();
    std::size_t sites = 1;
    for (std::size_t d = 0; d < dims; ++d) {
      stride[d] = sites;
      block_[d] = static_cast<std::size_t>(geometry.block()[d]);
      sites *= block_[d] + 2;
    }
    links_.resize(sites * dims * 9);
    const std::vector<Number> own = gauge.links();
    std::size_t site = 0;
    each_site([&](std::size_t place) {
      std::copy_n(own.data() + site++ * dims * 9, dims * 9, links_.data() + place * dims * 9);
    });
    HaloSpec spec;
    spec.extents.assign(geometry.spec().extents.rbegin(), geometry.spec().extents.rend());  // C order
    spec.grid.assign(geometry.spec().grid.rbegin(), geometry.spec().grid.rend());
    spec.rank_at = geometry.spec().rank_at;  // positions are numbered alike: direction 0 runs fastest in both
    spec.widths.assign(dims, {1, 1});
    spec.periodic.assign(dims, true);
    spec.corners = true;
    spec.element_bytes = {static_cast<std::int64_t>(dims * 9 * sizeof(Number))};
    const std::array arrays{std::as_writable_bytes(std::span(links_))};
    Plan(gauge.group(), halo(spec, gauge.group().rank()), arrays).run();
  }

  [[nodiscard]] Link at(std::size_t place, std::size_t direction) const {
    return su3::load(links_.data() + (place * dims + direction) * 9);
  }
  template <class Visit>
  void each_site(Visit&& visit) const {
    std::array<std::size_t, dims> at{};
    for (std::size_t left = block_[0] * block_[1] * block_[2] * block_[3]; left > 0; --left) {
      std::size_t place = 0;
      for (std::size_t d = 0; d < dims; ++d) place += (at[d] + 1) * stride[d];
      visit(place);
      for (std::size_t d = 0; d < dims && ++at[d] == block_[d]; ++d) at[d] = 0;
    }
  }

  std::array<std::size_t, dims> stride{};

 private:
  std::array<std::size_t, dims> block_{};
  std::vector<Number> links_;
};

// The sum of the four plaquettes that begin at x and go around in the sense from mu to nu.
Link leaves(const Surroundings& links, std::size_t x, std::size_t mu, std::size_t nu) {
  const std::size_t m = links.stride[mu];
  const std::size_t n = links.stride[nu];
  const auto dagger = [&](std::size_t place, std::size_t d) { return su3::adjoint(links.at(place, d)); };
  const Link ahead = links.at(x, mu) * links.at(x + m, nu) * dagger(x + n, mu) * dagger(x, nu);
  const Link left = links.at(x, nu) * dagger(x - m + n, mu) * dagger(x - m, nu) * links.at(x - m, mu);
  const Link behind = dagger(x - m, mu) * dagger(x - m - n, nu) * links.at(x - m - n, mu) * links.at(x - n, nu);
  const Link right = dagger(x - n, nu) * links.at(x - n, mu) * links.at(x - n + m, nu) * dagger(x, mu);
  return ahead + left + behind + right;
}

// The upper right quarter of each gamma matrix. The lower left quarter is its adjoint, and the diagonal quarters are 0.
constexpr std::array<std::array<std::array<Number, 2>, 2>, dims> upper_right{{
    {{{Number(0, 0), Number(0, 1)}, {Number(0, 1), Number(0, 0)}}},
    {{{Number(0, 0), Number(-1, 0)}, {Number(1, 0), Number(0, 0)}}},
    {{{Number(0, 1), Number(0, 0)}, {Number(0, 0), Number(0, -1)}}},
    {{{Number(1, 0), Number(0, 0)}, {Number(0, 0), Number(1, 0)}}},
}};

// The entry of gamma_mu gamma_nu on spins s, t of the upper (0) or lower half.
Number product_entry(std::size_t mu, std::size_t nu, std::size_t half, std::size_t s, std::size_t t) {
  Number sum = 0;
  for (std::size_t u = 0; u < 2; ++u) {
    sum += half == 0 ? upper_right[mu][s][u] * std::conj(upper_right[nu][t][u])
                     : std::conj(upper_right[mu][u][s]) * upper_right[nu][u][t];
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
  const Surroundings links(gauge);
  std::vector<Number> found(static_cast<std::size_t>(gauge.geometry().sites()) * planes.size() * 9);
  Number* to = found.data();
  links.each_site([&](std::size_t place) {
    for (const auto& [mu, nu] : planes) {
      const Link q = leaves(links, place, mu, nu);
      su3::store(to, 0.125 * (q + -1.0 * su3::adjoint(q)));
      to += 9;
    }
  });
  return found;
}

std::vector<double> clover_blocks(std::span<const Number> strength, double weight) {
  constexpr std::size_t of_site = planes.size() * 9;
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
          const Number spin = product_entry(planes[p].first, planes[p].second, half, st / 2, st % 2);
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
