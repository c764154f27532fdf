#include "lattice/gauge/clover_leaves.h"

#include <algorithm>
#include <numbers>

#include "lattice/gauge/matrix_functions.h"
#include "lattice/support/exact_sum.h"

namespace onehop::lattice::detail {

CloverLeaves::CloverLeaves(const MatrixSpace& space)
    : space_(space),
      strength_{MatrixField(space), MatrixField(space)},
      to_mu_(space),
      to_nu_(space),
      to_both_(space),
      plaquettes_(space.sites()),
      energy_(space.sites()),
      charge_(space.sites()) {}

// A plaquette contributes a leaf to each of its four corners: the product of its links that starts there. All four
// leaves are computed at the plaquette's lowest corner y, whose links are at hand, and then moved to y + mu, y + nu and
// y + mu + nu.
void CloverLeaves::plane(const LinkFields& links, int mu, int nu, MatrixField& strength) {
  const double* u = links[mu].data();
  const double* v = links[nu].data();
  const std::ptrdiff_t along = space_.stride(mu);
  const std::ptrdiff_t across = space_.stride(nu);
  double* out = strength.data();
  double* to_mu = to_mu_.data();
  double* to_nu = to_nu_.data();
  double* to_both = to_both_.data();
  double* plaquettes = plaquettes_.data();
  double* energy = energy_.data();
  each_site(space_, [=](auto sites) {
    const auto low = sites.load(u);
    const auto left = sites.load(v);
    const auto right = sites.load(v, along);
    const auto high = sites.load(u, across);
    const auto begin = low * right;
    const auto end = left * high;
    const auto plaquette = times_adjoint(begin, end);
    sites.store(out, plaquette);
    sites.store(to_mu, times_adjoint(right, high) * adjoint_times(left, low));
    sites.store(to_nu, adjoint_times(left, times_adjoint(begin, high)));
    sites.store(to_both, adjoint_times(end, begin));
    sites.store_real(plaquettes, sites.load_real(plaquettes) + 2 * (3 - su3::real_trace(plaquette)));
  });
  to_both_.fill(mu, Side::below);
  each_site(space_, [=](auto sites) { sites.store(to_nu, sites.load(to_nu) + sites.load(to_both, -along)); });
  to_nu_.fill(nu, Side::below);
  to_mu_.fill(mu, Side::below);
  each_site(space_, [=](auto sites) {
    const auto all = (sites.load(out) + sites.load(to_mu, -along)) + sites.load(to_nu, -across);
    const auto field = traceless_antihermitian(sites.all(0.25) * all);
    sites.store(out, field);
    sites.store_real(energy, sites.load_real(energy) + norm_squared(field));
  });
}

FieldStrength CloverLeaves::measure(const LinkFields& links) {
  for (auto* values : {&plaquettes_, &energy_, &charge_}) std::fill(values->begin(), values->end(), 0.0);
  const int dims = space_.dims();
  if (dims == 4) {
    constexpr std::array<std::array<int, 4>, 3> pairs{{{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 3, 1, 2}}};
    for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
      plane(links, pairs[pair][0], pairs[pair][1], strength_[0]);
      plane(links, pairs[pair][2], pairs[pair][3], strength_[1]);
      const double weight = (pair == 1 ? -1 : 1) / (4 * std::numbers::pi * std::numbers::pi);
      const double* one = strength_[0].data();
      const double* other = strength_[1].data();
      double* charge = charge_.data();
      each_site(space_, [=](auto sites) {
        const auto product = su3::real_trace_times_adjoint(sites.load(one), sites.load(other));
        sites.store_real(charge, sites.load_real(charge) + weight * product);
      });
    }
  } else {
    for (int nu = 1; nu < dims; ++nu) {
      for (int mu = 0; mu < nu; ++mu) plane(links, mu, nu, strength_[0]);
    }
  }
  std::array<ExactSum, 3> sums;
  for (std::size_t i = 0; i < energy_.size(); ++i) {
    sums[0].add(plaquettes_[i]);
    sums[1].add(energy_[i]);
    sums[2].add(charge_[i]);
  }
  ExactSum::over_ranks(space_.group(), sums);
  double sites = 1;
  for (const std::int64_t extent : space_.geometry().spec().extents) sites *= static_cast<double>(extent);
  return {sums[0].value() / sites, sums[1].value() / sites, sums[2].value()};
}

}  // namespace onehop::lattice::detail
