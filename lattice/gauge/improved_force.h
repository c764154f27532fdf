// The force of the tree-level Symanzik action (Luescher and Weisz, 1985): plaquettes with the weight 5/3, and
// rectangles of 2x1 plaquettes with the weight -1/12.
#pragma once

#include <vector>

#include "lattice/gauge/link_fields.h"

namespace onehop::lattice::detail {

class ImprovedForce {
 public:
  [[nodiscard]] static int fields(int dims) { return dims * dims; }

  // With `zeuthen`, a force is changed by 1 + D D* / 12, its covariant second difference along the link (Ramos and
  // Sint, arXiv:1508.05552).
  ImprovedForce(const MatrixSpace& space, bool zeuthen);

  // slopes = new_part * force + old_part * slopes, as add_forces() of the Wilson action does. Collective.
  void add(LinkFields& links, LinkFields& slopes, double new_part, double old_part);

 private:
  [[nodiscard]] MatrixField& staples(int mu, int nu);
  void make_staples(const LinkFields& links);
  void make_force(const LinkFields& links, int mu);

  const MatrixSpace& space_;
  bool zeuthen_;
  std::vector<MatrixField> staples_;  // the two around the links of a direction in another one
  LinkFields force_;
};

}  // namespace onehop::lattice::detail
