// Sums over the paths around links that make the fat and long links of staggered quarks.
#pragma once

#include <array>

#include "link_fields.h"
#include "onehop/lattice/smearing.h"

namespace onehop::lattice::detail {

// Keeps the memory that it needs.
class PathSums {
 public:
  explicit PathSums(const MatrixSpace& space);

  // fat = the sum of all paths of direction mu but Naik's. All ghosts of the links are filled. Collective.
  void fat(const LinkFields& links, int mu, const PathWeights& weights, MatrixField& fat);
  // naik = weight times the product of three links straight ahead. The ghosts ahead are filled. Collective.
  void naik(const LinkFields& links, int mu, double weight, MatrixField& naik);

 private:
  // inner_ = for each direction across mu what the last staple in it is made around.
  void make_inner(const LinkFields& links, int mu, const PathWeights& weights);
  // The ghosts of both sides in the direction nu of those across mu.
  static void fill_across(MatrixField& field, int mu, int nu);

  const MatrixSpace& space_;
  std::array<MatrixField, 3> around_;  // the staples around the link in each direction across
  std::array<MatrixField, 3> inner_;
};

}  // namespace onehop::lattice::detail
