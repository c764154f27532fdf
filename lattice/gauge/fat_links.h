// Sums over the paths around links that make the fat and long links of staggered quarks.
#pragma once

#include <array>

#include "lattice/gauge/link_fields.h"
#include "onehop/lattice/smearing.h"

namespace onehop::lattice::detail {

// In double or single precision. Keeps the memory that it needs.
template <class Number>
class FatLinkPaths {
 public:
  using Fields = LinkFieldsOf<Number>;
  using Field = MatrixFieldOf<Number>;

  explicit FatLinkPaths(const MatrixSpace& space);

  // fat = the sum of all paths of direction mu but Naik's. All ghosts of the links are filled. Collective.
  void fat(const Fields& links, int mu, const PathWeights& weights, Field& fat);
  // long_links = weight times the product of three links straight ahead. The ghosts ahead are filled. Collective.
  void long_links(const Fields& links, int mu, double weight, Field& long_links);

 private:
  // inner_ = for each direction across mu what the last staple in it is made around.
  void make_inner(const Fields& links, int mu, const PathWeights& weights);
  // The ghosts of both sides in the direction nu of those across mu.
  static void fill_across(Field& field, int mu, int nu);

  const MatrixSpace& space_;
  std::array<Field, 3> around_;  // the staples around the link in each direction across
  std::array<Field, 3> inner_;
};

}  // namespace onehop::lattice::detail
