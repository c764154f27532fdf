#include "lattice/gauge/improved_force.h"

#include <algorithm>
#include <array>

#include "lattice/gauge/matrix_functions.h"
#include "lattice/geometry/site_loop.h"

namespace onehop::lattice::detail {

namespace {

constexpr double plaquettes = 5.0 / 3;
constexpr double rectangles = -1.0 / 12;

}  // namespace

ImprovedForce::ImprovedForce(const MatrixSpace& space, bool zeuthen) : space_(space), zeuthen_(zeuthen), force_(space) {
  for (int i = 0; i < space.dims() * (space.dims() - 1); ++i) staples_.emplace_back(space);
}

MatrixField& ImprovedForce::staples(int mu, int nu) {
  const int number = mu * (space_.dims() - 1) + (nu < mu ? nu : nu - 1);
  return staples_[static_cast<std::size_t>(number)];
}

void ImprovedForce::make_staples(const LinkFields& links) {
  for (int mu = 0; mu < space_.dims(); ++mu) {
    for (int nu = 0; nu < space_.dims(); ++nu) {
      if (nu == mu) continue;
      const double* side = links[nu].data();
      const double* middle = links[mu].data();
      double* out = staples(mu, nu).data();
      const std::ptrdiff_t ahead = space_.stride(mu);
      const std::ptrdiff_t up = space_.stride(nu);
      each_site(space_, [=](auto sites) { sites.store(out, two_staples(sites, side, middle, ahead, up)); });
      for (const int direction : {std::min(mu, nu), std::max(mu, nu)}) {
        staples(mu, nu).fill(direction, Side::below);
        staples(mu, nu).fill(direction, Side::above);
      }
    }
  }
}

// A rectangle without a link is a staple with one of its three links replaced by staples around that link. Some of
// these paths return on themselves: they are the link, which exerts no force.
void ImprovedForce::make_force(const LinkFields& links, int mu) {
  struct Plane {
    const double* side;
    const double* around_middle;
    const double* around_side;
    std::ptrdiff_t up;
  };
  std::array<Plane, 3> planes{};
  int count = 0;
  for (int nu = 0; nu < space_.dims(); ++nu) {
    if (nu == mu) continue;
    planes[static_cast<std::size_t>(count++)] = {links[nu].data(), staples(mu, nu).data(), staples(nu, mu).data(),
                                                 space_.stride(nu)};
  }
  const double* link = links[mu].data();
  double* out = force_[mu].data();
  const std::ptrdiff_t ahead = space_.stride(mu);
  each_site(space_, [=](auto sites) {
    const auto weight = sites.all(rectangles);
    typename decltype(sites)::Matrix sum{};
    for (int i = 0; i < count; ++i) {
      const Plane& plane = planes[i];
      // The staple from `at` ahead; its own sides come back adjoint above the link, and first below it.
      const auto parts = [&](std::ptrdiff_t at) {
        const auto middle = sites.load(link, at);
        return std::array{sites.all(plaquettes) * middle + weight * sites.load(plane.around_middle, at),
                          weight * middle};
      };
      const auto above = parts(plane.up);
      const auto left = sites.load(plane.side);
      sum = sum +
            times_adjoint(left * above[0] + sites.load(plane.around_side) * above[1], sites.load(plane.side, ahead));
      sum = sum + times_adjoint(left * above[1], sites.load(plane.around_side, ahead));
      const auto below = parts(-plane.up);
      const auto down = sites.load(plane.side, -plane.up);
      sum = sum + (adjoint_times(down, below[0]) + adjoint_times(sites.load(plane.around_side, -plane.up), below[1])) *
                      sites.load(plane.side, ahead - plane.up);
      sum = sum + adjoint_times(down, below[1]) * sites.load(plane.around_side, ahead - plane.up);
    }
    sites.store(out, traceless_antihermitian(times_adjoint(sum, sites.load(link))));
  });
}

void ImprovedForce::add(LinkFields& links, LinkFields& slopes, double new_part, double old_part) {
  links.fill_all();
  make_staples(links);
  for (int mu = 0; mu < space_.dims(); ++mu) {
    make_force(links, mu);
    if (zeuthen_) {
      force_[mu].fill(mu, Side::below);
      force_[mu].fill(mu, Side::above);
    }
    const double* force = force_[mu].data();
    const double* link = links[mu].data();
    double* slope = slopes[mu].data();
    const std::ptrdiff_t ahead = space_.stride(mu);
    each_site(space_, [=, zeuthen = zeuthen_](auto sites) {
      auto found = sites.load(force);
      if (zeuthen) {
        const auto here = sites.load(link);
        const auto behind = sites.load(link, -ahead);
        const auto both = times_adjoint(here * sites.load(force, ahead), here) +
                          adjoint_times(behind, sites.load(force, -ahead)) * behind;
        found = sites.all(5.0 / 6) * found + sites.all(1.0 / 12) * both;
      }
      sites.store(slope, sites.all(new_part) * found + sites.all(old_part) * sites.load(slope));
    });
  }
}

}  // namespace onehop::lattice::detail
