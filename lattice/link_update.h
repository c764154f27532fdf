// New links from old ones and their staples, one link at a time.
#pragma once

#include "onehop/lattice/su3.h"
#include "random.h"

namespace onehop::lattice::detail {

using Link = su3::Matrix<double>;

// The distribution exp(beta / 3 Re tr(U staples)) of a link, sampled in three SU(2) subgroups one after the other.
void heat_bath_link(Link& link, const Link& staples, double beta, Random& random);

// To the other side of the maximum of Re tr(U staples) in each of these subgroups, where that is the same.
void over_relax_link(Link& link, const Link& staples);

// Evenly from SU(3).
[[nodiscard]] Link random_link(Random& random);

}  // namespace onehop::lattice::detail
