#include "onehop/lattice/hmc.h"

#include <cmath>
#include <string>
#include <vector>

#include "lattice/gauge/link_moves.h"
#include "lattice/gauge/whole_lattice.h"
#include "lattice/support/exact_sum.h"
#include "lattice/support/over_ranks.h"
#include "lattice/support/random.h"
#include "onehop/error.h"
#include "src/base/extremes.h"
#include "src/base/text.h"
#include "src/group/require_same.h"

namespace onehop::lattice {

namespace {

using detail::ExactSum;
using detail::LinkFields;
using detail::MatrixSpace;

// Purposes of random numbers (random.h). gauge.cc uses 1 and 2.
constexpr std::uint32_t momenta_purpose = 3;
constexpr std::uint32_t decision_purpose = 4;

// The fraction of an Omelyan step by which the links move before the first force; this value minimises the error
// (hep-lat/0505020).
constexpr double omelyan_lambda = 0.1931833275037836;

// P = sum of i n_a lambda_a / 2 with eight independent normal numbers n_a, so that -tr P^2 = sum of n_a^2 / 2.
void draw_momentum(detail::Random& random, std::complex<double>* p) {
  std::array<double, 8> n{};
  for (std::size_t i = 0; i < 8; i += 2) std::tie(n[i], n[i + 1]) = random.two_normal();
  const double third = n[7] / std::sqrt(3.0);
  p[0] = {0, (n[2] + third) / 2};
  p[4] = {0, (third - n[2]) / 2};
  p[8] = {0, -third};
  const auto pair = [&](int i, int j, double real, double imaginary) {
    p[3 * i + j] = {imaginary / 2, real / 2};
    p[3 * j + i] = {-imaginary / 2, real / 2};
  };
  pair(0, 1, n[0], n[1]);
  pair(0, 2, n[3], n[4]);
  pair(1, 2, n[5], n[6]);
}

// Links, momenta, and two copies of the links during a trajectory.
MatrixSpace& with_memory(MatrixSpace& space) {
  space.require_memory<double>(2 * space.dims(), 2, "hybrid Monte Carlo");
  return space;
}

}  // namespace

struct Hmc::Impl {
  Impl(const Gauge& gauge, const HmcOptions& wanted)
      : options(wanted),
        space(gauge.group(), gauge.geometry()),
        links(with_memory(space)),
        momenta(space),
        energy(space.sites()) {
    links.load(gauge.links());
  }

  void draw_momenta(std::uint32_t number);
  void move_links(double time) { detail::move_links(links, momenta, time); }
  void move_momenta(double time) { detail::add_forces(links, momenta, time * options.beta / 6, 1); }
  void integrate();
  void turn_round();
  // -sum tr P^2 and sum (1 - Re tr U_p / 3) over the whole lattice. The sums are exact, so that dH does not suffer from
  // cancellation.
  [[nodiscard]] std::array<ExactSum, 2> hamiltonian();
  [[nodiscard]] double difference(const std::array<ExactSum, 2>& after, const std::array<ExactSum, 2>& before) const {
    return (after[0].value() - before[0].value()) + options.beta * (after[1].value() - before[1].value());
  }

  HmcOptions options;
  MatrixSpace space;
  LinkFields links;
  LinkFields momenta;
  std::vector<double> energy;
};

void Hmc::Impl::draw_momenta(std::uint32_t number) {
  const Geometry& geometry = space.geometry();
  const auto origin = geometry.origin(space.group().rank());
  const auto dims = static_cast<std::size_t>(space.dims());
  std::vector<std::complex<double>> drawn(space.sites() * dims * 9);
  for (std::size_t site = 0; site < space.sites(); ++site) {
    const std::uint64_t place = detail::number_in_lattice(geometry, origin, static_cast<std::int64_t>(site));
    for (std::size_t d = 0; d < dims; ++d) {
      detail::Random random(options.seed, place * 4 + d, number, momenta_purpose);
      draw_momentum(random, drawn.data() + (site * dims + d) * 9);
    }
  }
  momenta.load(drawn);
}

// Symmetric in time, so that flipping the momenta leads back. Link moves come first and last; those of adjacent steps
// are merged.
void Hmc::Impl::integrate() {
  const double step = options.length / options.steps;
  const bool leapfrog = options.integrator == Integrator::leapfrog;
  const double edge = leapfrog ? 0.5 : omelyan_lambda;
  move_links(edge * step);
  for (int i = 0; i < options.steps; ++i) {
    if (leapfrog) {
      move_momenta(step);
    } else {
      move_momenta(step / 2);
      move_links((1 - 2 * edge) * step);
      move_momenta(step / 2);
    }
    move_links((i + 1 == options.steps ? 1 : 2) * edge * step);
  }
}

void Hmc::Impl::turn_round() {
  for (int mu = 0; mu < space.dims(); ++mu) {
    double* momentum = momenta[mu].data();
    detail::each_site(space, [=](auto sites) { sites.store(momentum, sites.all(-1) * sites.load(momentum)); });
  }
}

std::array<ExactSum, 2> Hmc::Impl::hamiltonian() {
  links.fill_ahead();
  std::array<ExactSum, 2> sums;
  double* values = energy.data();
  const auto add_to = [&](ExactSum& sum) {
    for (const double value : energy) sum.add(value);
  };
  for (int mu = 0; mu < space.dims(); ++mu) {
    const double* momentum = momenta[mu].data();
    detail::each_site(space, [=](auto sites) { sites.store_real(values, detail::norm_squared(sites.load(momentum))); });
    add_to(sums[0]);
    const double* u = links[mu].data();
    const std::ptrdiff_t along = space.stride(mu);
    for (int nu = 0; nu < mu; ++nu) {
      const double* v = links[nu].data();
      const std::ptrdiff_t across = space.stride(nu);
      detail::each_site(space, [=](auto sites) {
        const auto lower = sites.load(u) * sites.load(v, along);
        const auto upper = sites.load(v) * sites.load(u, across);
        sites.store_real(values, 1 - su3::real_trace_times_adjoint(lower, upper) * (1.0 / 3));
      });
      add_to(sums[1]);
    }
  }
  ExactSum::over_ranks(space.group(), sums);
  return sums;
}

Hmc::Hmc(const Gauge& gauge, const HmcOptions& options) {
  onehop::detail::require_same(gauge.group(), "Hmc",
                               {{"beta", options.beta},
                                {"length", options.length},
                                {"steps", options.steps},
                                {"integrator", options.integrator},
                                {"seed", options.seed}});
  if (!(options.beta >= 0 && options.beta <= 1e6))
    throw BadInput("hmc: expected a beta from 0 to 1e6, found " + onehop::base::number_text(options.beta));
  if (options.steps < 1) throw BadInput("hmc: expected 1 step or more, found " + std::to_string(options.steps));
  if (!(options.length > 0 && std::isfinite(options.length)))
    throw BadInput("hmc: expected a trajectory length above 0, found " + onehop::base::number_text(options.length));
  impl_ = std::make_unique<Impl>(gauge, options);
}
Hmc::Hmc(Hmc&&) noexcept = default;
Hmc& Hmc::operator=(Hmc&&) noexcept = default;
Hmc::~Hmc() = default;

Trajectory Hmc::run(std::uint32_t number) {
  Impl& impl = *impl_;
  onehop::detail::require_same(impl.space.group(), "run", {{"number", number}});
  const auto old = impl.links.store();
  impl.draw_momenta(number);
  const auto before = impl.hamiltonian();
  impl.integrate();
  Trajectory done;
  done.delta_h = impl.difference(impl.hamiltonian(), before);
  detail::Random random(impl.options.seed, 0, number, decision_purpose);
  done.accepted = random.two().first <= std::exp(-done.delta_h);  // false for NaN
  if (!done.accepted) {
    impl.links.load(old);
    return done;
  }
  // Rounding errors move the links away from SU(3) over many trajectories.
  auto links = impl.links.store();
  for (std::size_t i = 0; i < links.size(); i += 9) {
    su3::Matrix<double> link = su3::load(links.data() + i);
    su3::reunitarise(link);
    su3::store(links.data() + i, link);
  }
  impl.links.load(links);
  return done;
}

Reversal Hmc::reverse(std::uint32_t number) {
  Impl& impl = *impl_;
  onehop::detail::require_same(impl.space.group(), "reverse", {{"number", number}});
  const auto old = impl.links.store();
  impl.draw_momenta(number);
  const auto before = impl.hamiltonian();
  impl.integrate();
  impl.turn_round();
  impl.integrate();
  Reversal found;
  found.delta_h = impl.difference(impl.hamiltonian(), before);
  const auto links = impl.links.store();
  for (std::size_t i = 0; i < links.size(); ++i) {
    found.links = base::larger(found.links, std::abs(links[i] - old[i]));
  }
  impl.links.load(old);
  detail::largest_over_ranks(impl.space.group(), std::span(&found.links, 1));
  return found;
}

void Hmc::copy_to(Gauge& gauge) const { gauge.set_links(impl_->links.store()); }

}  // namespace onehop::lattice
