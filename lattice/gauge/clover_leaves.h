// Measures the field strength of links, from the four plaquettes around each site, plane by plane.
#pragma once

#include <array>
#include <complex>
#include <span>
#include <utility>
#include <vector>

#include "lattice/gauge/link_fields.h"
#include "onehop/lattice/flow.h"

namespace onehop::lattice::detail {

// Returns F = (Q - adjoint(Q)) / 8 on this rank's block in lexicographic order, [site][plane][row][column], where Q is
// the sum of the four plaquettes that begin at a site and go around the plane in the same sense. Collective.
[[nodiscard]] std::vector<std::complex<double>> field_strength_matrices(const Gauge& gauge,
                                                                        std::span<const std::pair<int, int>> planes);

class CloverLeaves {
 public:
  static constexpr int fields = 5;

  explicit CloverLeaves(const MatrixSpace& space);

  // Returns energy and charge. The ghosts of `links` ahead must be filled. Collective.
  [[nodiscard]] FieldStrength measure(const LinkFields& links);

 private:
  // Computes the field strength in the plane of mu and nu, and adds its contribution to the energies.
  void plane(const LinkFields& links, int mu, int nu, MatrixField& strength);

  const MatrixSpace& space_;
  std::array<MatrixField, 2> strength_;  // of two planes without a common direction
  // Plaquettes to be moved one site along mu, along nu, and along both.
  MatrixField to_mu_;
  MatrixField to_nu_;
  MatrixField to_both_;
  // Per site.
  std::vector<double> plaquettes_;
  std::vector<double> energy_;
  std::vector<double> charge_;
};

}  // namespace onehop::lattice::detail
