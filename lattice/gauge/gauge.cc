#include "onehop/lattice/gauge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "lattice/gauge/checkerboard_layout.h"
#include "lattice/gauge/link_update.h"
#include "lattice/gauge/whole_lattice.h"
#include "lattice/geometry/memory_need.h"
#include "lattice/support/exact_sum.h"
#include "lattice/support/random.h"
#include "onehop/error.h"
#include "onehop/lattice/su3.h"
#include "src/base/text.h"
#include "src/group/require_same.h"

namespace onehop::lattice {

namespace {

using detail::CheckerboardLayout;
using detail::ExactSum;
using detail::OneParity;
using Link = su3::Matrix<double>;
using Number = std::complex<double>;

constexpr std::size_t link_numbers = 9;

GeometrySpec checked(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid,
                     std::vector<int> rank_at) {
  if (extents.size() < 2)
    throw BadInput("gauge field: expected 2 to 4 directions, found " + std::to_string(extents.size()));
  detail::require_memory_for(group, extents, Gauge::bytes_on_a_rank(extents, grid, group.size()), "a gauge field");
  const int ranks = group.size();
  GeometrySpec spec{std::move(extents), std::move(grid), 1, 1, 1};
  spec.rank_at = std::move(rank_at);
  const Geometry geometry(spec);
  if (geometry.ranks() != ranks) {
    throw BadInput("gauge field: expected a grid of the group's " + base::counted(ranks, "rank") + ", found one of " +
                   std::to_string(geometry.ranks()));
  }
  for (const std::int64_t extent : spec.extents) {
    if (extent < 2) throw BadInput("gauge field: expected extents of 2 or more, found " + std::to_string(extent));
  }
  return spec;
}

// Purposes of random numbers (random.h). hmc.cc uses 3 and 4.
constexpr std::uint32_t link_purpose = 1;
constexpr std::uint32_t sweep_purpose = 2;

// A link from the Haar measure: the distribution of independent normal numbers is invariant under U(3), and so is their
// orthogonalisation.
Link random_link(detail::Random& random) {
  Link m;
  for (auto& row : m.e) {
    for (auto& z : row) {
      const auto [re, im] = random.two_normal();
      z = {re, im};
    }
  }
  su3::reunitarise(m);
  return m;
}

// The operation of a sweep for each_site(): calls update(link, staples, sites, direction) for the links of one parity
// and direction.
template <class Update>
struct UpdateLinks {
  CheckerboardLayout* rows;
  std::array<const double*, 4> links;
  int dims;
  int mu;
  Update update;

  template <class Sites>
  void operator()(const Sites& sites) const {
    auto link = sites.load(links[mu]);
    update(link, detail::sum_of_staples(sites, links, sites.steps, dims, mu), sites, mu);
    su3::reunitarise(link, [](const auto& x) { return detail::square_root(x); });
    sites.store(rows->data(mu), link);
  }
  // Prefetches the data of a row that is not in L2 yet: its own links, and those a step away in the last two
  // directions.
  void prefetch(const CheckerboardLayout::Row& row) const {
    const auto bytes = static_cast<std::size_t>(36 * rows->half()) * sizeof(double);
    const auto ask = [&](int direction, std::ptrdiff_t shift) {
      detail::prefetch_bytes(links[static_cast<std::size_t>(direction)] + row.at + shift, bytes);
    };
    const int last = dims - 1;
    const auto ahead = [&](int direction) { return row.steps.ahead[static_cast<std::size_t>(direction)]; };
    for (int nu = 0; nu < dims; ++nu) ask(nu, mu == last ? ahead(last) : 0);
    if (mu == last) {
      ask(mu, 0);
    } else {
      const std::ptrdiff_t back = row.steps.back[static_cast<std::size_t>(last)];
      ask(mu, ahead(last));
      ask(mu, back);
      ask(last, back);
    }
    if (dims > 2 && mu != last - 1) ask(mu, ahead(last - 1));
  }
  void row_done(const CheckerboardLayout::Row& row, bool odd) const { rows->close_row(rows->data(mu), row, odd); }
};

template <class Update>
void sweep(CheckerboardLayout& rows, const Update& update) {
  for (const std::int64_t extent : rows.geometry().spec().extents) {
    if (extent % 2 != 0) {
      throw BadInput("gauge field: expected even extents, so that links of one parity are independent, found " +
                     std::to_string(extent));
    }
  }
  for (int mu = 0; mu < rows.dims(); ++mu) {
    for (const int parity : {0, 1}) {
      detail::each_site(OneParity{&rows, parity}, UpdateLinks<Update>{&rows, rows.data(), rows.dims(), mu, update});
      rows.fill(mu);
    }
  }
}

}  // namespace

struct Gauge::Impl {
  Impl(const Group& group, GeometrySpec spec) : rows(group, Geometry(std::move(spec))) {
    std::vector<Number> unit(rows.sites() * static_cast<std::size_t>(rows.dims()) * link_numbers);
    for (std::size_t i = 0; i < unit.size(); ++i) unit[i] = i % link_numbers % 4 == 0 ? 1 : 0;
    rows.load(unit);
  }

  // Calls change(link, number of the site in the whole lattice, direction) for every link, and stores the links again.
  template <class Change>
  void each_link(Change&& change);
  // The link that deviates most from SU(3), of all ranks; `links` are those of this rank. Collective.
  [[nodiscard]] GaugeDeviation deviation(std::span<const Number> links) const;
  [[nodiscard]] double all_sites() const {
    double sites = 1;
    for (const std::int64_t extent : rows.geometry().spec().extents) sites *= static_cast<double>(extent);
    return sites;
  }

  CheckerboardLayout rows;
};

template <class Change>
void Gauge::Impl::each_link(Change&& change) {
  std::vector<Number> links = rows.store();
  const auto origin = rows.geometry().origin(rows.group().rank());
  const auto dims = static_cast<std::uint64_t>(rows.dims());
  for (std::size_t i = 0; i < links.size() / link_numbers; ++i) {
    Link link = su3::load(links.data() + i * link_numbers);
    change(link, detail::number_in_lattice(rows.geometry(), origin, static_cast<std::int64_t>(i / dims)), i % dims);
    su3::store(links.data() + i * link_numbers, link);
  }
  rows.load(links);
}

Gauge::Gauge(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid, std::vector<int> rank_at)
    : impl_(std::make_unique<Impl>(group, checked(group, std::move(extents), std::move(grid), std::move(rank_at)))) {}

double Gauge::bytes_on_a_rank(std::span<const std::int64_t> extents, std::span<const int> grid, int ranks) {
  constexpr double tables = 160;  // of a site: its place, neighbours and number, in C++ and in Python
  double sites = 1;
  double with_ghosts = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const bool known = d < grid.size() && grid[d] > 0;
    const double block = static_cast<double>(extents[d]) / (known ? grid[d] : 1);
    sites *= block;
    with_ghosts *= block + (d == 0 || (known && grid[d] > 1) ? 2 : 0);
  }
  if (grid.empty()) sites /= std::max(ranks, 1), with_ghosts /= std::max(ranks, 1);
  // The links are copied as a whole when they are loaded, stored or averaged.
  return (sites + with_ghosts) * static_cast<double>(extents.size()) * detail::matrix_bytes + sites * tables;
}
Gauge::Gauge(Gauge&&) noexcept = default;
Gauge& Gauge::operator=(Gauge&&) noexcept = default;
Gauge::~Gauge() = default;

const Group& Gauge::group() const noexcept { return impl_->rows.group(); }
const Geometry& Gauge::geometry() const noexcept { return impl_->rows.geometry(); }

void Gauge::set_links(std::span<const Number> links) {
  const auto dims = static_cast<std::size_t>(impl_->rows.dims());
  const auto expected = impl_->rows.sites() * dims * link_numbers;
  if (links.size() != expected) {
    throw BadInput("gauge field: expected " + std::to_string(expected) + " complex numbers (sites of the block x " +
                   base::counted(dims, "direction") + " x 3 rows x 3 columns), found " + std::to_string(links.size()));
  }
  impl_->rows.load(links);
}

std::vector<Number> Gauge::links() const { return impl_->rows.store(); }

void Gauge::set_random(std::uint64_t seed) {
  onehop::detail::require_same(group(), "set_random", {{"seed", seed}});
  impl_->each_link([&](Link& link, std::uint64_t number, std::uint64_t direction) {
    detail::Random random(seed, number * 4 + direction, 0, link_purpose);
    link = random_link(random);
  });
}

namespace {

// Stores Re tr / 3 of the plaquettes in `values`, [plane][site], with the planes (0, 1), (0, 2), (1, 2), ... and
// `count` sites.
struct FindPlaquettes {
  std::array<const double*, 4> links;
  int dims;
  double* values;
  std::size_t count;
  std::size_t bytes;  // of a row

  template <class Sites>
  void operator()(const Sites& sites) const {
    double* out = values;
    for (int nu = 1; nu < dims; ++nu) {
      for (int mu = 0; mu < nu; ++mu, out += count) {
        const auto lower = sites.load(links[mu]) * sites.load(links[nu], sites.steps.ahead[mu]);
        const auto upper = sites.load(links[nu]) * sites.load(links[mu], sites.steps.ahead[nu]);
        sites.store_real(out, su3::real_trace_times_adjoint(lower, upper) * (1.0 / 3));
      }
    }
  }
  void prefetch(const CheckerboardLayout::Row& row) const {
    const std::ptrdiff_t ahead = row.steps.ahead[static_cast<std::size_t>(dims - 1)];
    for (int mu = 0; mu < dims; ++mu)
      detail::prefetch_bytes(links[static_cast<std::size_t>(mu)] + row.at + ahead, bytes);
  }
};

}  // namespace

Plaquettes Gauge::plaquettes() const {
  const CheckerboardLayout& rows = impl_->rows;
  const int dims = rows.dims();
  const auto planes = static_cast<std::size_t>(dims * (dims - 1) / 2);
  std::array<ExactSum, 2> sums;  // space, time
  std::vector<double> values(planes * rows.sites());
  for (const int parity : {0, 1}) {
    detail::each_site(OneParity{&rows, parity},
                      FindPlaquettes{rows.data(), dims, values.data(), rows.sites(),
                                     static_cast<std::size_t>(36 * rows.half()) * sizeof(double)});
  }
  const std::size_t in_space_planes = (planes - static_cast<std::size_t>(dims - 1)) * rows.sites();
  for (std::size_t i = 0; i < values.size(); ++i) sums[i < in_space_planes ? 0 : 1].add(values[i]);
  ExactSum::over_ranks(rows.group(), sums);
  const double in_time = impl_->all_sites() * (dims - 1);
  const double in_space = in_time * (dims - 2) / 2;
  return {(sums[0].value() + sums[1].value()) / (in_space + in_time), in_space > 0 ? sums[0].value() / in_space : 0,
          sums[1].value() / in_time};
}

double Gauge::link_trace() const {
  const std::vector<Number> links = impl_->rows.store();
  std::array<ExactSum, 1> sum;
  for (std::size_t i = 0; i < links.size(); i += link_numbers) sum[0].add(su3::real_trace(su3::load(&links[i])) / 3);
  ExactSum::over_ranks(impl_->rows.group(), sum);
  return sum[0].value() / (impl_->all_sites() * impl_->rows.dims());
}

GaugeDeviation Gauge::deviation() const { return impl_->deviation(impl_->rows.store()); }

GaugeDeviation Gauge::Impl::deviation(std::span<const Number> links) const {
  const Geometry& whole = rows.geometry();
  const Group& group = rows.group();
  const auto origin = whole.origin(group.rank());
  const auto dims = static_cast<std::size_t>(rows.dims());
  detail::WorstLink worst;
  for (std::size_t i = 0; i < links.size() / link_numbers; ++i) {
    const double found = su3::deviation(su3::load(&links[i * link_numbers]));
    if (found <= worst.value) continue;
    worst = {found, detail::number_in_lattice(whole, origin, static_cast<std::int64_t>(i / dims)),
             static_cast<std::int64_t>(i % dims)};
  }
  return detail::worst_over_ranks(group, whole, worst);
}

void Gauge::reunitarise() {
  std::vector<Number> links = impl_->rows.store();
  for (std::size_t i = 0; i < links.size(); i += link_numbers) {
    Link link = su3::load(&links[i]);
    su3::reunitarise(link);
    su3::store(&links[i], link);
  }
  const GaugeDeviation worst = impl_->deviation(links);
  if (!(worst.value <= 1e-8)) {
    throw BadInput("gauge field: expected links that can be projected to SU(3), found a singular one at " +
                   detail::place_of(worst) +
                   "; a field with such links, for example one with open boundaries, cannot be reunitarised");
  }
  impl_->rows.load(links);
}

void Gauge::heat_bath(double beta, std::uint64_t seed, std::uint32_t number, bool compare) {
  if (compare) onehop::detail::require_same(group(), "heat_bath", {{"beta", beta}, {"seed", seed}, {"sweep", number}});
  if (!(beta >= 0 && beta <= 1e6))
    throw BadInput("gauge field: expected a beta from 0 to 1e6, found " + onehop::base::number_text(beta));
  sweep(impl_->rows,
        [=]<int Lanes>(auto& link, const auto& staples, const detail::CheckerboardSites<Lanes>& sites, int mu) {
          using Real = typename detail::Sites<Lanes>::Real;
          detail::Words<Real> place{};
          for (int lane = 0; lane < Lanes; ++lane) place[lane] = (sites.number + 2u * lane) * 4 + mu;
          const detail::RandomLanes<Real> random(seed, place, number, sweep_purpose);
          detail::heat_bath_link<Real>(link, staples, beta, random, detail::first_lanes<Real>(sites.count));
        });
}

void Gauge::over_relax() {
  sweep(impl_->rows, []<int Lanes>(auto& link, const auto& staples, const detail::CheckerboardSites<Lanes>&, int) {
    detail::over_relax_link<typename detail::Sites<Lanes>::Real>(link, staples);
  });
}

}  // namespace onehop::lattice
