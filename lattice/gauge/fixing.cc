#include "onehop/lattice/fixing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "lattice/gauge/checkerboard_layout.h"
#include "lattice/gauge/link_update.h"
#include "lattice/gauge/matrix_functions.h"
#include "lattice/geometry/memory_need.h"
#include "lattice/support/exact_sum.h"
#include "onehop/error.h"
#include "src/base/text.h"
#include "src/group/require_same.h"

namespace onehop::lattice {

namespace {

using detail::CheckerboardLayout;
using detail::OneParity;

constexpr int sweeps_between_checks = 10;
constexpr int hits = 6;  // in SU(2) subgroups, for the step g of a site

// G(x) times the sum of U(x) G(x + mu)^dagger and of U(x - mu)^dagger G(x - mu)^dagger. A factor g in front of G(x)
// multiplies it from the left; its trace is that of the links that begin or end at x.
template <class Sites>
inline typename Sites::Matrix links_at(const Sites& sites, const std::array<const double*, 4>& links,
                                       const double* turns, int directions) {
  typename Sites::Matrix sum{};
  for (int mu = 0; mu < directions; ++mu) {
    const std::ptrdiff_t ahead = sites.steps.ahead[mu];
    const std::ptrdiff_t back = sites.steps.back[mu];
    sum = sum + su3::times_adjoint(sites.load(links[mu]), sites.load(turns, ahead));
    sum = sum + su3::adjoint(sites.load(turns, back) * sites.load(links[mu], back));
  }
  return sites.load(turns) * sum;
}

// The operation of a sweep on the sites of one parity: the step g maximises Re tr(g m), where m is links_at(). 1 +
// factor (g - 1), projected to SU(3), is g to the power `factor` if g is close to 1; its projection always exists.
struct TurnSites {
  CheckerboardLayout* all;
  std::array<const double*, 4> links;
  int directions;
  double factor;

  template <class Sites>
  void operator()(const Sites& sites) const {
    using Real = typename Sites::Real;
    using detail::operator-;
    const auto one = su3::Matrix<Real>::one();
    auto together = links_at(sites, links, all->data(0), directions);
    auto g = one;
    for (std::size_t i = 0; i < hits; ++i) {
      const auto& subgroup = detail::subgroups[i % 3];
      const auto turn = detail::adjoint_of<Real>(detail::project(together, subgroup).direction);
      detail::multiply_from_left<Real>(turn, subgroup, together);
      detail::multiply_from_left<Real>(turn, subgroup, g);
    }
    auto turned = (one + sites.all(factor) * (g - one)) * sites.load(all->data(0));
    su3::reunitarise(turned, [](const auto& x) { return detail::square_root(x); });
    sites.store(all->data(0), turned);
  }
  void row_done(const CheckerboardLayout::Row& row, bool odd) const { all->close_row(all->data(0), row, odd); }
};

// The links and the gauge transformation G of each site: the links in the gauge are G(x) U(x) G(x + mu)^dagger.
struct Fixing {
  Fixing(const Gauge& gauge, int used)
      : links(gauge.group(), gauge.geometry()), turns(gauge.group(), gauge.geometry(), 1), directions(used) {
    links.load(gauge.links());
    std::vector<std::complex<double>> unit(links.sites() * 9);
    for (std::size_t i = 0; i < unit.size(); ++i) unit[i] = i % 9 % 4 == 0 ? 1 : 0;
    turns.load(unit);
  }

  void sweep(double over_relaxation) {
    for (const int parity : {1, 0}) {
      detail::each_site(OneParity{&turns, parity}, TurnSites{&turns, links.data(), directions, over_relaxation});
      turns.fill(0);
    }
  }

  [[nodiscard]] FixedGauge state(int sweeps) const {
    constexpr double finer = 0x1p30;  // an exact sum has terms of 2^-50, too coarse for theta
    std::vector<double> divergences(links.sites());
    std::vector<double> traces(links.sites());
    for (const int parity : {0, 1}) {
      detail::each_site(OneParity{&links, parity}, [all = links.data(), turned = turns.data()[0], used = directions,
                                                    squares = divergences.data(), values = traces.data()](auto sites) {
        const auto together = links_at(sites, all, turned, used);
        sites.store_real(squares, detail::norm_squared(detail::traceless_antihermitian(together)));
        sites.store_real(values, su3::real_trace(together));
      });
    }
    std::array<detail::ExactSum, 2> sums;
    for (std::size_t i = 0; i < links.sites(); ++i) {
      sums[0].add(finer * divergences[i]);
      sums[1].add(traces[i]);
    }
    detail::ExactSum::over_ranks(links.group(), sums);
    double sites = 1;
    for (const std::int64_t extent : links.geometry().spec().extents) sites *= static_cast<double>(extent);
    return {sweeps, sums[0].value() / finer / (3 * sites), sums[1].value() / (6 * directions * sites)};
  }

  void turn_links() {
    for (int mu = 0; mu < links.dims(); ++mu) {
      for (const int parity : {0, 1}) {
        detail::each_site(OneParity{&links, parity}, [link = links.data(mu), turned = turns.data()[0], mu](auto sites) {
          const auto before = sites.load(turned) * sites.load(link);
          sites.store(link, su3::times_adjoint(before, sites.load(turned, sites.steps.ahead[mu])));
        });
      }
    }
  }

  CheckerboardLayout links;
  CheckerboardLayout turns;
  int directions;  // of the condition
};

void check(const Gauge& gauge, const FixingOptions& options) {
  onehop::detail::require_same(gauge.group(), "fix_gauge",
                               {{"condition", options.condition},
                                {"theta", options.tolerance},
                                {"over_relaxation", options.over_relaxation},
                                {"sweeps", options.most_sweeps}});
  if (!(options.tolerance >= 1e-24 && options.tolerance <= 1))
    throw BadInput("gauge fixing: expected a tolerance from 1e-24 to 1, found " + base::number_text(options.tolerance));
  if (!(options.over_relaxation >= 1 && options.over_relaxation < 2))
    throw BadInput("gauge fixing: expected an over-relaxation from 1 to less than 2, found " +
                   base::number_text(options.over_relaxation));
  if (options.most_sweeps < 1)
    throw BadInput("gauge fixing: expected at most 1 sweep or more, found " + std::to_string(options.most_sweeps));
  for (const std::int64_t extent : gauge.geometry().spec().extents) {
    if (extent % 2 != 0)
      throw BadInput("gauge fixing: expected even extents, so that sites of one parity are independent, found " +
                     std::to_string(extent));
  }
}

}  // namespace

FixedGauge fix_gauge(Gauge& gauge, const FixingOptions& options,
                     const std::function<void(const FixedGauge&)>& progress) {
  check(gauge, options);
  const Geometry& geometry = gauge.geometry();
  const auto& extents = geometry.spec().extents;
  const double bytes = 1.5 * Gauge::bytes_on_a_rank(extents, geometry.spec().grid, gauge.group().size());
  detail::require_memory_for(gauge.group(), extents, bytes, "gauge fixing");
  Fixing fixing(gauge, geometry.dims() - (options.condition == GaugeCondition::coulomb ? 1 : 0));
  FixedGauge found = fixing.state(0);
  while (!(found.theta <= options.tolerance)) {
    if (found.sweeps >= options.most_sweeps || !std::isfinite(found.theta))
      throw Error("gauge fixing: expected a theta of at most " + base::number_text(options.tolerance) + ", found " +
                  base::number_text(found.theta) + " after " + base::counted(found.sweeps, "sweep") +
                  "; allow more sweeps or a larger tolerance, or take another over-relaxation");
    const int more = std::min(sweeps_between_checks, options.most_sweeps - found.sweeps);
    for (int i = 0; i < more; ++i) fixing.sweep(options.over_relaxation);
    found = fixing.state(found.sweeps + more);
    if (progress) progress(found);
  }
  fixing.turn_links();
  gauge.set_links(fixing.links.store());
  return found;
}

}  // namespace onehop::lattice
