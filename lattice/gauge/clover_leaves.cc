#include "lattice/gauge/clover_leaves.h"

#include <algorithm>
#include <numbers>

#include "lattice/gauge/matrix_functions.h"
#include "lattice/support/exact_sum.h"

namespace onehop::lattice::detail {

std::vector<std::complex<double>> field_strength_matrices(const Gauge& gauge,
                                                          std::span<const std::pair<int, int>> planes) {
  const MatrixSpace space(gauge.group(), gauge.geometry());
  LinkFields links(space);
  links.load(gauge.links());
  links.fill_all();
  MatrixField made(space);
  std::vector<std::complex<double>> strength(space.sites() * planes.size() * 9);
  for (std::size_t plane = 0; plane < planes.size(); ++plane) {
    const auto [mu, nu] = planes[plane];
    const double* u = links[mu].data();
    const double* v = links[nu].data();
    const std::ptrdiff_t m = space.stride(mu);
    const std::ptrdiff_t n = space.stride(nu);
    double* out = made.data();
    each_site(space, [=](auto sites) {
      const auto at = [&](const double* field, std::ptrdiff_t shift) { return sites.load(field, shift); };
      const auto dagger = [&](const double* field, std::ptrdiff_t shift) { return su3::adjoint(at(field, shift)); };
      const auto ahead = at(u, 0) * at(v, m) * dagger(u, n) * dagger(v, 0);
      const auto left = at(v, 0) * dagger(u, n - m) * dagger(v, -m) * at(u, -m);
      const auto behind = dagger(u, -m) * dagger(v, -m - n) * at(u, -m - n) * at(v, -n);
      const auto right = dagger(v, -n) * at(u, -n) * at(v, m - n) * dagger(u, 0);
      const auto all = ahead + left + behind + right;
      sites.store(out, sites.all(0.125) * (all + sites.all(-1) * su3::adjoint(all)));
    });
    made.store(strength.data() + plane * 9, planes.size() * 9);
  }
  return strength;
}

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
