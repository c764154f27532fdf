// Fat and long links of improved staggered quarks: weighted sums over the paths around each link.
#pragma once

#include <array>

#include "lattice/gauge/link_fields.h"
#include "onehop/lattice/smearing.h"

namespace onehop::lattice::detail {

// Number is double or float. An object keeps its work space.
template <class Number>
class FatLinkPaths {
 public:
  using Fields = LinkFieldsOf<Number>;
  using Field = MatrixFieldOf<Number>;

  static constexpr int fields = 6;  // of the work space

  explicit FatLinkPaths(const MatrixSpace& space);

  // fat = the weighted sum of all paths of direction mu except Naik's term. All ghosts of the links must be filled.
  // Collective.
  void fat(const Fields& links, int mu, const PathWeights& weights, Field& fat);
  // long_links = weight times the product of three links straight ahead. The ghosts ahead must be filled. Collective.
  void long_links(const Fields& links, int mu, double weight, Field& long_links);

 private:
  // Computes inner_, the fields around which fat() builds the last staple in each direction across mu.
  void make_inner(const Fields& links, int mu, const PathWeights& weights);
  // Fills the ghosts on both sides in the nu-th direction across mu.
  static void fill_across(Field& field, int mu, int nu);

  const MatrixSpace& space_;
  std::array<Field, 3> around_;  // the staples around the link in each direction across
  std::array<Field, 3> inner_;
};

}  // namespace onehop::lattice::detail
