// The field strength of links from the four plaquettes around each site, plane by plane.
#pragma once

#include <array>
#include <vector>

#include "lattice/gauge/link_fields.h"
#include "onehop/lattice/flow.h"

namespace onehop::lattice::detail {

class CloverLeaves {
 public:
  explicit CloverLeaves(const MatrixSpace& space);

  // Energy and charge of links whose ghosts ahead are filled. Collective.
  [[nodiscard]] FieldStrength measure(const LinkFields& links);

 private:
  // The field strength in the plane of mu and nu, and what it adds to the energies.
  void plane(const LinkFields& links, int mu, int nu, MatrixField& strength);

  const MatrixSpace& space_;
  std::array<MatrixField, 2> strength_;  // of two planes that have no direction in common
  // Plaquettes that are to be moved: along mu, along nu, along both.
  MatrixField to_mu_;
  MatrixField to_nu_;
  MatrixField to_both_;
  // Of every site.
  std::vector<double> plaquettes_;
  std::vector<double> energy_;
  std::vector<double> charge_;
};

}  // namespace onehop::lattice::detail
