#include "onehop/lattice/smearing.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lattice/gauge/fat_links.h"
#include "lattice/gauge/link_update.h"
#include "lattice/gauge/matrix_functions.h"
#include "lattice/gauge/whole_lattice.h"
#include "onehop/error.h"
#include "src/base/text.h"
#include "src/group/require_same.h"

namespace onehop::lattice {

namespace {

using detail::FatLinkPaths;
using detail::FieldsOf;
using detail::LinkFields;
using detail::LinkFieldsOf;
using detail::MatrixField;
using detail::MatrixFieldOf;
using detail::MatrixSpace;

void check(const Gauge& gauge, const SmearingOptions& options, const char* function, const char* name,
           std::initializer_list<double> weights) {
  onehop::detail::require_same(gauge.group(), function,
                               {{name, weights}, {"steps", options.steps}, {"space_only", options.space_only}});
  if (options.steps < 0) throw BadInput("smearing: expected 0 steps or more, found " + std::to_string(options.steps));
  for (const double weight : weights) {
    if (!std::isfinite(weight))
      throw BadInput("smearing: expected a finite weight, found " + onehop::base::number_text(weight));
  }
}

// Throws BadInput on all ranks if the largest deviation from unitarity on any rank is above rounding. Collective.
void require_unitary(const MatrixSpace& space, const std::vector<double>& deviations, int mu) {
  const Geometry& geometry = space.geometry();
  const auto origin = geometry.origin(space.group().rank());
  detail::WorstLink worst{0, 0, mu};
  for (std::size_t i = 0; i < deviations.size(); ++i) {
    const double value = std::isfinite(deviations[i]) ? deviations[i] : HUGE_VAL;
    if (value <= worst.value) continue;
    worst = {value, detail::number_in_lattice(geometry, origin, static_cast<std::int64_t>(i)), mu};
  }
  const GaugeDeviation found = detail::worst_over_ranks(space.group(), geometry, worst);
  if (found.value <= 1e-8) return;
  throw BadInput("smearing: expected smeared links that have a nearest unitary matrix, found a singular one at " +
                 detail::place_of(found) + "; smear less");
}

// The SU(3) matrix U with the largest Re tr(U V^dagger), where it is near the unitary factor W of V = W H. With the
// eigenvalues k of K = H^-1, U is W times the phases whose sines are k mu; mu makes the determinant 1. Both are series
// in mu, and by the characteristic equation of K the powers of K reduce to the second one. Where the series do not
// converge fast, gives W with its determinant divided out.
template <class R>
inline su3::Matrix<R> near_largest_trace(const su3::Matrix<R>& v) {
  constexpr int terms = 30;
  const su3::Matrix<R> w = detail::nearest_unitary(v);
  su3::Matrix<R> k = su3::adjoint_times(detail::inverse_adjoint(v), w);
  k = (3 / su3::real_trace(k)) * k;
  const su3::Matrix<R> square = k * k;
  const R two = su3::real_trace(square);
  const R c1 = R{} + 3, c2 = 0.5 * (9 - two), c3 = detail::determinant(k).re;
  const R angle = detail::argument(detail::determinant(w));

  std::array<R, terms> arcsine;              // the terms of the sum of all arcsines
  R now = c1, before = R{} + 3, next = two;  // traces of k^(2n + 1), k^2n, k^(2n + 2)
  double factor = 1;
  for (int n = 0; n < terms; ++n) {
    arcsine[static_cast<std::size_t>(n)] = factor * now;
    const R odd = c1 * next - c2 * now + c3 * before;
    const R even = c1 * odd - c2 * next + c3 * now;
    before = next;
    now = odd;
    next = even;
    factor *= (2.0 * n + 1) * (2 * n + 1) / ((2.0 * n + 2) * (2 * n + 3));
  }
  R mu = angle * (-1.0 / 3);
  for (int step = 0; step < 4; ++step) {
    const R x = mu * mu;
    R sum{}, slope{};
    for (int n = terms - 1; n >= 0; --n) {
      sum = sum * x + arcsine[static_cast<std::size_t>(n)];
      slope = slope * x + (2.0 * n + 1) * arcsine[static_cast<std::size_t>(n)];
    }
    mu = mu - (angle + mu * sum) / slope;
  }
  const R x = mu * mu;
  // No sine is above the fourth root of the sum of all fourth powers.
  const detail::Mask<R> near = x * x * detail::norm_squared(square) < R{} + 0.13;

  // sqrt(1 - mu^2 k^2) = p0 + p1 (mu k)^2 + p2 (mu k)^4
  const R e1 = x * two, e2 = x * x * (c2 * c2 - 2 * c1 * c3), e3 = x * x * x * c3 * c3;
  R p0{}, p1{}, p2{};
  double binomial = 1;
  std::array<double, terms> root{};
  for (int n = 0; n < terms; ++n) {
    root[static_cast<std::size_t>(n)] = binomial;
    binomial *= (2.0 * n - 1) / (2 * n + 2);
  }
  for (int n = terms - 1; n >= 0; --n) {
    const R low = p2 * e3 + root[static_cast<std::size_t>(n)], middle = p0 - p2 * e2;
    p2 = p1 + p2 * e1;
    p1 = middle;
    p0 = low;
  }
  su3::Matrix<R> phases = (p1 * x) * square + (p2 * x * x) * (square * square);
  for (int i = 0; i < 3; ++i) {
    phases.e[i][i].re = phases.e[i][i].re + p0;
    for (int j = 0; j < 3; ++j) {
      phases.e[i][j].re = phases.e[i][j].re - mu * k.e[i][j].im;
      phases.e[i][j].im = phases.e[i][j].im + mu * k.e[i][j].re;
    }
  }
  const su3::Matrix<R> turn = detail::scaled(detail::third_of_turn<R>(-angle), su3::Matrix<R>::one());
  return w * detail::where<R>(near, phases, turn);
}

// The SU(3) matrix U with the largest Re tr(U V^dagger), to rounding, found by maximising it in SU(2) subgroups.
template <class R>
inline su3::Matrix<R> of_largest_trace(const su3::Matrix<R>& v) {
  su3::Matrix<R> u = near_largest_trace(v);
  su3::Matrix<R> together = su3::times_adjoint(u, v);
  detail::Mask<R> wanted = R{} < R{} + 1;
  for (int step = 0; step < 100 && detail::any(wanted); ++step) {
    R change{};
    for (const detail::Subgroup& subgroup : detail::subgroups) {
      detail::Quaternion<R> g = detail::adjoint_of<R>(detail::project(together, subgroup).direction);
      change = change + (g[1] * g[1] + g[2] * g[2] + g[3] * g[3]);
      g[0] = wanted ? g[0] : R{} + 1;
      for (int i = 1; i < 4; ++i) g[i] = wanted ? g[i] : R{};
      detail::multiply_from_left<R>(g, subgroup, u);
      detail::multiply_from_left<R>(g, subgroup, together);
    }
    wanted = change > R{} + 1e-30 ? wanted : detail::Mask<R>{};
  }
  return u;
}

enum class Projection : std::uint8_t { unitary, special, largest_trace };

// Replaces every matrix by its projection to U(3) or SU(3). Collective. Throws BadInput for a singular matrix.
template <Projection To, class Number>
void make_unitary(MatrixFieldOf<Number>& field, const MatrixSpace& space, int mu, std::vector<double>& deviations) {
  deviations.resize(space.sites());
  Number* numbers = field.data();
  double* values = deviations.data();
  detail::each_site(FieldsOf<Number>{&space}, [=](auto sites) {
    using Some = decltype(sites);
    const auto v = detail::converted<typename Some::Double>(sites.load(numbers));
    const auto u = [&] {
      if constexpr (To == Projection::unitary) return detail::nearest_unitary(v);
      if constexpr (To == Projection::special) return detail::nearest_special(v);
      if constexpr (To == Projection::largest_trace) return of_largest_trace(v);
    }();
    sites.store(numbers, detail::converted<typename Some::Real>(u));
    const auto product = times_adjoint(u, u);
    sites.store_real(values, detail::norm_squared(detail::operator-(product, decltype(v)::one())));
  });
  require_unitary(space, deviations, mu);
}

// Calls make(direction, field) for every direction and returns the fields in lexicographic order.
template <class Number, class Make>
Links links_made(const MatrixSpace& space, MatrixFieldOf<Number>& field, const Make& make) {
  const auto dims = static_cast<std::size_t>(space.dims());
  Links links(space.sites() * dims * 9);
  for (std::size_t mu = 0; mu < dims; ++mu) {
    make(static_cast<int>(mu), field);
    field.store(links.data() + mu * 9, dims * 9);
  }
  return links;
}

template <class Number>
FatLinks fat_links_of(LinkFieldsOf<Number>& links, FatLinkPaths<Number>& paths, const PathWeights& weights) {
  MatrixFieldOf<Number> made(links.space());
  FatLinks found;
  found.fat = links_made(links.space(), made, [&](int mu, auto& field) { paths.fat(links, mu, weights, field); });
  found.long_links = links_made(links.space(), made,
                                [&](int mu, auto& field) { paths.long_links(links, mu, weights.long_links, field); });
  return found;
}

template <class Number>
FatLinks fat_links_in(const Gauge& gauge, const PathWeights& weights) {
  const MatrixSpace space(gauge.group(), gauge.geometry());
  space.require_memory<Number>(space.dims() + FatLinkPaths<Number>::fields + 1, 2, "fat links");
  LinkFieldsOf<Number> links(space);
  links.load(gauge.links());
  links.fill_all();
  FatLinkPaths<Number> paths(space);
  return fat_links_of(links, paths, weights);
}

template <class Number>
HisqLinks hisq_links_in(const Gauge& gauge, const PathWeights& second) {
  const MatrixSpace space(gauge.group(), gauge.geometry());
  space.require_memory<Number>(2 * space.dims() + FatLinkPaths<Number>::fields, 3, "HISQ links");
  FatLinkPaths<Number> paths(space);
  LinkFieldsOf<Number> unitary(space);
  {
    LinkFieldsOf<Number> links(space);
    links.load(gauge.links());
    links.fill_all();
    std::vector<double> deviations;
    for (int mu = 0; mu < space.dims(); ++mu) {
      paths.fat(links, mu, fat7_weights(), unitary[mu]);
      make_unitary<Projection::unitary>(unitary[mu], space, mu, deviations);
    }
  }
  unitary.fill_all();
  FatLinks found = fat_links_of(unitary, paths, second);
  return {std::move(found.fat), std::move(found.long_links), unitary.store()};
}

bool in_single(Precision precision) {
  if (precision == Precision::half) throw BadInput("fat links: expected double or single precision, found half");
  return precision == Precision::single;
}

// In each step, computes the staples of all links and then calls change(links, staple sums, staples per link,
// direction, space) per direction.
template <class Change>
void smear(Gauge& gauge, const SmearingOptions& options, const Change& change) {
  const MatrixSpace space(gauge.group(), gauge.geometry());
  space.require_memory<double>(2 * space.dims(), 1, "smearing");
  LinkFields links(space);
  LinkFields sums(space);
  links.load(gauge.links());
  const int last = space.dims() - (options.space_only ? 1 : 0);
  const detail::Steps steps = detail::steps_of(space);
  for (int step = 0; step < options.steps; ++step) {
    links.fill_all();
    for (int mu = 0; mu < last; ++mu) {
      double* sum = sums[mu].data();
      const auto add = [=, from = links.data()](auto sites) {
        sites.store(sum, detail::sum_of_staples(sites, from, steps, last, mu));
      };
      detail::each_site(space, detail::Prefetching{add, detail::staples_ahead(space, links.data(), last, mu)});
    }
    for (int mu = 0; mu < last; ++mu) change(links[mu], sums[mu], 2 * (last - 1), mu, space);
  }
  gauge.set_links(links.store());
}

// Sums over paths with larger weights could overflow in single precision.
constexpr double largest_weight = 1e30;

}  // namespace

PathWeights fat3_weights() { return {.one = 1.0 / 4, .three = 1.0 / 8}; }
PathWeights fat5_weights() { return {.one = 1.0 / 7, .three = 1.0 / 14, .five = 1.0 / 56}; }
PathWeights fat7_weights() { return {.one = 1.0 / 8, .three = 1.0 / 16, .five = 1.0 / 64, .seven = 1.0 / 384}; }

PathWeights asqtad_weights(double u0) {
  if (!(u0 > 0 && std::isfinite(u0)))
    throw BadInput("asqtad: expected a u0 above 0, found " + onehop::base::number_text(u0));
  const double two = 1 / (u0 * u0);
  return {.one = 5.0 / 8,
          .three = two / 16,
          .five = two * two / 64,
          .seven = two * two * two / 384,
          .lepage = -two * two / 16,
          .long_links = -two / 24};
}

PathWeights hisq_second_weights(double naik_epsilon) {
  if (!std::isfinite(naik_epsilon))
    throw BadInput("hisq: expected a finite naik_epsilon, found " + onehop::base::number_text(naik_epsilon));
  return {.one = 1 + naik_epsilon / 8,
          .three = 1.0 / 16,
          .five = 1.0 / 64,
          .seven = 1.0 / 384,
          .lepage = -1.0 / 8,
          .long_links = -(1 + naik_epsilon) / 24};
}

FatLinks fat_links(const Gauge& gauge, const PathWeights& weights, Precision precision) {
  const std::array all{weights.one, weights.three, weights.five, weights.seven, weights.lepage, weights.long_links};
  onehop::detail::require_same(gauge.group(), "fat_links", {{"weights", all}, {"precision", precision}});
  for (const double weight : all) {
    if (!(std::abs(weight) < largest_weight))
      throw BadInput("fat links: expected path weights below 1e30 in magnitude, found " +
                     onehop::base::number_text(weight));
  }
  return in_single(precision) ? fat_links_in<float>(gauge, weights) : fat_links_in<double>(gauge, weights);
}

HisqLinks hisq_links(const Gauge& gauge, double naik_epsilon, Precision precision) {
  onehop::detail::require_same(gauge.group(), "hisq_links", {{"naik_epsilon", naik_epsilon}, {"precision", precision}});
  const PathWeights second = hisq_second_weights(naik_epsilon);
  return in_single(precision) ? hisq_links_in<float>(gauge, second) : hisq_links_in<double>(gauge, second);
}

void smear_ape(Gauge& gauge, double alpha, const SmearingOptions& options) {
  check(gauge, options, "ape", "alpha", {alpha});
  std::vector<double> deviations;
  smear(gauge, options, [&](MatrixField& link, MatrixField& sum, int staples, int mu, const MatrixSpace& space) {
    double* links = link.data();
    const double* around = sum.data();
    const double weight = staples == 0 ? 0 : alpha / staples;
    const double own = 1 - alpha;
    detail::each_site(space, [=](auto sites) {
      sites.store(links, sites.all(own) * sites.load(links) + sites.all(weight) * sites.load(around));
    });
    make_unitary<Projection::special>(link, space, mu, deviations);
  });
}

void smear_stout(Gauge& gauge, double rho, const SmearingOptions& options) {
  check(gauge, options, "stout", "rho", {rho});
  smear(gauge, options, [&](MatrixField& link, MatrixField& sum, int, int, const MatrixSpace& space) {
    double* links = link.data();
    const double* around = sum.data();
    detail::each_site(space, [=](auto sites) {
      const auto old = sites.load(links);
      const auto turn = detail::traceless_antihermitian(times_adjoint(sites.load(around), old));
      sites.store(links, detail::exponential_antihermitian(sites.all(rho) * turn) * old);
    });
  });
}

// A link by its direction mu and, as a bit mask, the directions around it in which it is smeared: its staples consist
// of links that are smeared in one direction less, that of the staple.
void smear_hyp(Gauge& gauge, const HypWeights& weights, const SmearingOptions& options) {
  check(gauge, options, "hyp", "alpha", {weights.outer, weights.middle, weights.inner});
  const MatrixSpace space(gauge.group(), gauge.geometry());
  space.require_memory<double>(8 * space.dims(), 1, "HYP smearing");
  LinkFields links(space);
  links.load(gauge.links());
  std::map<std::pair<int, unsigned>, MatrixField> made;
  std::vector<double> deviations;
  const int last = space.dims() - (options.space_only ? 1 : 0);
  const auto data = [&](int mu, unsigned around) -> const double* {
    return around == 0 ? links[mu].data() : made.at({mu, around}).data();
  };
  const auto make = [&](int mu, unsigned around, double weight) {
    struct Staples {
      const double* side;
      const double* middle;
      std::ptrdiff_t up;
    };
    std::array<Staples, 3> staples{};
    int count = 0;
    for (int nu = 0; nu < last; ++nu) {
      const unsigned others = around & ~(1U << nu);
      if (others != around)
        staples[static_cast<std::size_t>(count++)] = {data(nu, others), data(mu, others), space.stride(nu)};
    }
    MatrixField& field = made.insert_or_assign({mu, around}, MatrixField(space)).first->second;
    detail::each_site(space, [=, out = field.data(), link = links[mu].data(), ahead = space.stride(mu)](auto sites) {
      auto sum = sites.all(1 - weight) * sites.load(link);
      for (int i = 0; i < count; ++i)
        sum = sum + sites.all(weight / (2 * count)) *
                        detail::two_staples(sites, staples[i].side, staples[i].middle, ahead, staples[i].up);
      sites.store(out, sum);
    });
    make_unitary<Projection::largest_trace>(field, space, mu, deviations);
    for (int direction = 0; direction < last; ++direction) {
      field.fill(direction, Side::below);
      field.fill(direction, Side::above);
    }
  };
  const std::array<double, 3> of_level{weights.inner, weights.middle, weights.outer};
  const unsigned all = (1U << last) - 1;
  for (int step = 0; step < options.steps && last > 1; ++step) {
    links.fill_all();
    for (int level = 1; level < last; ++level) {
      for (int mu = 0; mu < last; ++mu) {
        for (unsigned around = 1; around <= all; ++around) {
          if (std::popcount(around) == level && (around >> mu & 1U) == 0)
            make(mu, around, of_level[static_cast<std::size_t>(level - 1)]);
        }
      }
    }
    for (int mu = 0; mu < last; ++mu) links[mu] = std::move(made.at({mu, all & ~(1U << mu)}));
  }
  gauge.set_links(links.store());
}

}  // namespace onehop::lattice
