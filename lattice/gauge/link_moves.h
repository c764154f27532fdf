// The moves of links along a force, which the gradient flow and HMC share.
#pragma once

#include "lattice/gauge/link_fields.h"
#include "lattice/gauge/matrix_functions.h"
#include "lattice/geometry/site_loop.h"

namespace onehop::lattice::detail {

// slopes = new_part * force + old_part * slopes, where the force of a link is the traceless anti-Hermitian part of its
// staples times its adjoint. Collective.
inline void add_forces(LinkFields& links, LinkFields& slopes, double new_part, double old_part) {
  const MatrixSpace& space = links.space();
  links.fill_all();
  const int dims = space.dims();
  const Steps steps = steps_of(space);
  for (int mu = 0; mu < dims; ++mu) {
    double* slope = slopes[mu].data();
    const auto find = [=, from = links.data()](auto sites) {
      const auto around = sum_of_staples(sites, from, steps, dims, mu);
      const auto force = traceless_antihermitian(times_adjoint(around, sites.load(from[mu])));
      sites.store(slope, sites.all(new_part) * force + sites.all(old_part) * sites.load(slope));
    };
    auto rows = staples_ahead(space, links.data(), dims, mu);
    rows.add(slope);
    each_site(space, Prefetching{find, rows});
  }
}

// links = exp(time * slopes) links.
inline void move_links(LinkFields& links, const LinkFields& slopes, double time) {
  const MatrixSpace& space = links.space();
  for (int mu = 0; mu < space.dims(); ++mu) {
    const double* slope = slopes[mu].data();
    double* link = links[mu].data();
    const auto turn = [=](auto sites) {
      sites.store(link, exponential_antihermitian(sites.all(time) * sites.load(slope)) * sites.load(link));
    };
    RowsAhead<double> rows(space);
    rows.add(slope);
    rows.add(link);
    each_site(space, Prefetching{turn, rows});
  }
}

}  // namespace onehop::lattice::detail
