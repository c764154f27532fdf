#include "onehop/lattice/loops.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numbers>
#include <string>
#include <utility>

#include "lattice/gauge/link_fields.h"
#include "lattice/gauge/matrix_functions.h"
#include "lattice/geometry/site_loop.h"
#include "lattice/support/exact_sum.h"
#include "onehop/error.h"
#include "src/group/require_same.h"

namespace onehop::lattice {

namespace {

using detail::ExactSum;
using detail::LinkFields;
using detail::MatrixField;
using detail::MatrixSpace;

// Fields of products of links, moved by one site at a time, so that one layer of ghosts is enough for loops of any
// size.
class Lines {
 public:
  explicit Lines(const MatrixSpace& space) : space_(space), spare_(space) {}

  // field(x) = field(x + steps * direction). Collective.
  void move(MatrixField& field, int direction, int steps) {
    const std::ptrdiff_t step = steps > 0 ? space_.stride(direction) : -space_.stride(direction);
    for (int i = 0; i < std::abs(steps); ++i) {
      field.fill(direction, steps > 0 ? Side::above : Side::below);
      const double* from = field.data();
      double* to = spare_.data();
      detail::each_site(space_, [=](auto sites) { sites.store(to, sites.load(from, step)); });
      std::swap(field, spare_);
    }
  }
  // line(x) = links(x) line(x + direction). Collective.
  void lengthen(MatrixField& line, const MatrixField& links, int direction) {
    move(line, direction, 1);
    const double* link = links.data();
    double* out = line.data();
    detail::each_site(space_, [=](auto sites) { sites.store(out, sites.load(link) * sites.load(out)); });
  }
  [[nodiscard]] MatrixField copy(const MatrixField& field) const {
    MatrixField made(space_);
    std::copy_n(field.data(), space_.numbers(), made.data());
    return made;
  }

 private:
  const MatrixSpace& space_;
  MatrixField spare_;
};

double sum_over_sites(const MatrixSpace& space, const std::vector<double>& values) {
  std::array<ExactSum, 1> sum;
  for (const double value : values) sum[0].add(value);
  ExactSum::over_ranks(space.group(), sum);
  return sum[0].value();
}

}  // namespace

std::vector<double> wilson_loops(const Gauge& gauge, int longest_r, int longest_t) {
  onehop::detail::require_same(gauge.group(), "wilson_loops", {{"r", longest_r}, {"t", longest_t}});
  const auto& extents = gauge.geometry().spec().extents;
  const auto widest = *std::min_element(extents.begin(), extents.end() - 1);
  if (longest_r < 1 || longest_t < 1 || longest_r > widest || longest_t > extents.back())
    throw BadInput("Wilson loops: expected 1 to " + std::to_string(widest) + " links in space and 1 to " +
                   std::to_string(extents.back()) + " in time, found " + std::to_string(longest_r) + " and " +
                   std::to_string(longest_t));
  const MatrixSpace space(gauge.group(), gauge.geometry());
  const int time = space.dims() - 1;
  space.require_memory<double>(space.dims() + 2 * longest_t + 3, 1, "Wilson loops");
  LinkFields links(space);
  links.load(gauge.links());
  Lines lines(space);
  std::vector<double> found(static_cast<std::size_t>(longest_r * longest_t));
  std::vector<double> values(space.sites());
  double loops = time;
  for (const std::int64_t extent : extents) loops *= static_cast<double>(extent);
  std::vector<MatrixField> near;  // lines in time
  for (int t = 1; t <= longest_t; ++t) {
    near.push_back(lines.copy(t == 1 ? links[time] : near.back()));
    if (t > 1) lines.lengthen(near.back(), links[time], time);
  }
  for (int direction = 0; direction < time; ++direction) {
    MatrixField across = lines.copy(links[direction]);
    std::vector<MatrixField> far;  // those that begin at the far end of `across`
    for (const MatrixField& line : near) far.push_back(lines.copy(line));
    for (int r = 1; r <= longest_r; ++r) {
      if (r > 1) lines.lengthen(across, links[direction], direction);
      MatrixField later = lines.copy(across);
      for (int t = 1; t <= longest_t; ++t) {
        const auto at = static_cast<std::size_t>(t - 1);
        lines.move(far[at], direction, 1);
        lines.move(later, time, 1);
        detail::each_site(space, [low = across.data(), right = far[at].data(), left = near[at].data(),
                                  high = later.data(), out = values.data()](auto sites) {
          const auto trace =
              su3::real_trace_times_adjoint(sites.load(low) * sites.load(right), sites.load(left) * sites.load(high));
          sites.store_real(out, (1.0 / 3) * trace);
        });
        found[static_cast<std::size_t>((r - 1) * longest_t) + at] += sum_over_sites(space, values) / loops;
      }
    }
  }
  return found;
}

namespace {

// A size of loops in a plane, and its weight in the charge.
struct Size {
  int m;
  int n;
  double weight;
};
constexpr double five = 1.0 / 20;
constexpr std::array<Size, 5> sizes{{{1, 1, (19 - 55 * five) / 9},
                                     {2, 2, (1 - 64 * five) / 9},
                                     {1, 2, (640 * five - 64) / 45},
                                     {1, 3, 1.0 / 5 - 2 * five},
                                     {3, 3, five}}};

class LargeLeaves {
 public:
  static constexpr int fields = 4 * 3 + 7;

  explicit LargeLeaves(const Gauge& gauge, const MatrixSpace& space) : space_(space), links_(space), lines_(space) {
    links_.load(gauge.links());
    for (int mu = 0; mu < 4; ++mu) {
      long_[0].push_back(lines_.copy(links_[mu]));
      for (std::size_t more = 1; more < 3; ++more) {
        long_[more].push_back(lines_.copy(long_[more - 1][static_cast<std::size_t>(mu)]));
        lines_.lengthen(long_[more].back(), links_[mu], mu);
      }
    }
  }

  // strength += weight * the field strength from the four loops of m by n links that begin at a site.
  void add(int mu, int nu, int m, int n, double weight, MatrixField& strength) {
    const MatrixField& low = line(mu, m);
    const MatrixField& left = line(nu, n);
    MatrixField right = lines_.copy(left);
    MatrixField high = lines_.copy(low);
    lines_.move(right, mu, m);
    lines_.move(high, nu, n);
    MatrixField to_mu(space_), to_nu(space_), to_both(space_);
    detail::each_site(
        space_, [a = low.data(), b = right.data(), c = high.data(), d = left.data(), out = strength.data(),
                 one = to_mu.data(), two = to_nu.data(), both = to_both.data(), weight](auto sites) {
          const auto begin = sites.load(a) * sites.load(b);
          const auto end = sites.load(d) * sites.load(c);
          sites.store(one, times_adjoint(sites.load(b), sites.load(c)) * adjoint_times(sites.load(d), sites.load(a)));
          sites.store(two, adjoint_times(sites.load(d), times_adjoint(begin, sites.load(c))));
          sites.store(both, adjoint_times(end, begin));
          sites.store(out,
                      sites.load(out) + sites.all(weight) * detail::traceless_antihermitian(times_adjoint(begin, end)));
        });
    lines_.move(to_both, mu, -m);
    detail::each_site(space_, [from = to_both.data(), to = to_nu.data()](auto sites) {
      sites.store(to, sites.load(to) + sites.load(from));
    });
    lines_.move(to_nu, nu, -n);
    lines_.move(to_mu, mu, -m);
    detail::each_site(space_, [one = to_mu.data(), two = to_nu.data(), out = strength.data(), weight](auto sites) {
      const auto both = detail::traceless_antihermitian(sites.load(one) + sites.load(two));
      sites.store(out, sites.load(out) + sites.all(weight) * both);
    });
  }

 private:
  [[nodiscard]] const MatrixField& line(int mu, int length) const {
    return long_[static_cast<std::size_t>(length - 1)][static_cast<std::size_t>(mu)];
  }

  const MatrixSpace& space_;
  LinkFields links_;
  Lines lines_;
  std::array<std::vector<MatrixField>, 3> long_;  // lines of 1, 2 and 3 links
};

}  // namespace

double improved_charge(const Gauge& gauge) {
  if (gauge.geometry().dims() != 4) return 0;
  const MatrixSpace space(gauge.group(), gauge.geometry());
  space.require_memory<double>(LargeLeaves::fields + 7, 1, "the topological charge");
  LargeLeaves leaves(gauge, space);
  std::vector<double> density(space.sites());
  constexpr std::array<std::array<int, 4>, 3> pairs{{{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 3, 1, 2}}};
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
    for (const auto& [m, n, weight] : sizes) {
      std::array<MatrixField, 2> strength{MatrixField(space), MatrixField(space)};
      for (std::size_t i = 0; i < 2; ++i) {
        const int mu = pairs[pair][2 * i], nu = pairs[pair][2 * i + 1];
        leaves.add(mu, nu, m, n, m == n ? 0.25 : 0.125, strength[i]);
        if (m != n) leaves.add(mu, nu, n, m, 0.125, strength[i]);
      }
      const double factor = (pair == 1 ? -1 : 1) * weight / (4 * std::numbers::pi * std::numbers::pi * m * m * n * n);
      detail::each_site(
          space, [factor, one = strength[0].data(), other = strength[1].data(), out = density.data()](auto sites) {
            const auto product = su3::real_trace_times_adjoint(sites.load(one), sites.load(other));
            sites.store_real(out, sites.load_real(out) + factor * product);
          });
    }
  }
  return sum_over_sites(space, density);
}

}  // namespace onehop::lattice
