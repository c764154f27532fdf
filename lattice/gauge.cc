#include "onehop/lattice/gauge.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "exact_sum.h"
#include "link_update.h"
#include "onehop/error.h"
#include "onehop/lattice/su3.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"

namespace onehop::lattice {

namespace {

using detail::ExactSum;
using detail::Link;
using Number = std::complex<double>;

constexpr std::size_t link_numbers = 9;

GeometrySpec checked(std::vector<std::int64_t> extents, std::vector<int> grid, int ranks) {
  if (extents.size() < 2)
    throw BadInput("gauge field: expected 2 to 4 directions, found " + std::to_string(extents.size()));
  GeometrySpec spec{std::move(extents), std::move(grid), 1, 1, 1};
  const Geometry geometry(spec);
  if (geometry.ranks() != ranks) {
    throw BadInput("gauge field: expected a grid of the group's " + std::to_string(ranks) + " ranks, found one of " +
                   std::to_string(geometry.ranks()));
  }
  for (const std::int64_t extent : spec.extents) {
    if (extent < 2) throw BadInput("gauge field: expected extents of 2 or more, found " + std::to_string(extent));
  }
  return spec;
}

}  // namespace

struct Gauge::Impl {
  Impl(const Group& the_group, GeometrySpec spec);

  Group group;
  Geometry geometry;
  std::size_t dims;
  std::array<std::size_t, 4> stride{};     // of the extended block, ghosts included, in sites
  std::vector<std::vector<Number>> links;  // per direction, of the extended block
  std::vector<Plan> plans;                 // per direction: its ghosts

  [[nodiscard]] Link at(std::size_t direction, std::size_t place) const {
    return su3::load(links[direction].data() + place * link_numbers);
  }
  void put(std::size_t direction, std::size_t place, const Link& link) {
    su3::store(links[direction].data() + place * link_numbers, link);
  }
  void exchange() {
    for (Plan& plan : plans) plan.run();
  }

  // visit(place in the extended block, coordinates in the whole lattice, its number there), in lexicographic order.
  template <class Visit>
  void each_site(Visit&& visit) const;
  [[nodiscard]] double plaquette(std::size_t place, std::size_t mu, std::size_t nu) const;
  [[nodiscard]] Link staples(std::size_t place, std::size_t mu) const;
  // update(link, staples, number of the site, direction) for every link, by direction and colour.
  template <class Update>
  void sweep(Update&& update);
};

Gauge::Impl::Impl(const Group& the_group, GeometrySpec spec)
    : group(the_group), geometry(std::move(spec)), dims(static_cast<std::size_t>(geometry.dims())) {
  std::size_t sites = 1;
  for (std::size_t d = 0; d < dims; ++d) {
    stride[d] = sites;
    sites *= static_cast<std::size_t>(geometry.block()[d] + 2);
  }
  std::vector<Number> unit(sites * link_numbers);
  for (std::size_t site = 0; site < sites; ++site) {
    for (std::size_t i = 0; i < link_numbers; ++i) unit[site * link_numbers + i] = i % 4 == 0 ? 1 : 0;
  }
  links.assign(dims, unit);
  HaloSpec halo_spec;
  const GeometrySpec& whole = geometry.spec();
  halo_spec.extents.assign(whole.extents.rbegin(), whole.extents.rend());  // C order: the last runs fastest
  halo_spec.grid.assign(whole.grid.rbegin(), whole.grid.rend());
  halo_spec.widths.assign(dims, {1, 1});
  halo_spec.periodic.assign(dims, true);
  halo_spec.corners = true;
  halo_spec.element_bytes = {static_cast<std::int64_t>(link_numbers * sizeof(Number))};
  const Schedule schedule = halo(halo_spec, group.rank());
  for (auto& of_direction : links) {
    const std::array arrays{std::as_writable_bytes(std::span(of_direction))};
    plans.emplace_back(group, schedule, arrays);
  }
}

template <class Visit>
void Gauge::Impl::each_site(Visit&& visit) const {
  const auto origin = geometry.origin(group.rank());
  const auto block = geometry.block();
  std::array<std::int64_t, 4> at{};
  for (std::int64_t site = 0; site < geometry.sites(); ++site) {
    std::size_t place = 0;
    std::uint64_t number = 0;
    std::array<std::int64_t, 4> global{};
    for (std::size_t d = dims; d-- > 0;) {
      global[d] = origin[d] + at[d];
      place += static_cast<std::size_t>(at[d] + 1) * stride[d];
      number = number * static_cast<std::uint64_t>(geometry.spec().extents[d]) + static_cast<std::uint64_t>(global[d]);
    }
    visit(place, global, number);
    for (std::size_t d = 0; d < dims && ++at[d] == block[d]; ++d) at[d] = 0;
  }
}

double Gauge::Impl::plaquette(std::size_t place, std::size_t mu, std::size_t nu) const {
  const Link there = at(mu, place) * at(nu, place + stride[mu]);
  const Link other = at(nu, place) * at(mu, place + stride[nu]);
  return su3::real_trace_times_adjoint(there, other);
}

Link Gauge::Impl::staples(std::size_t place, std::size_t mu) const {
  Link sum{};
  const std::size_t ahead = place + stride[mu];
  for (std::size_t nu = 0; nu < dims; ++nu) {
    if (nu == mu) continue;
    const std::size_t down = place - stride[nu];
    sum = sum + su3::times_adjoint(at(nu, ahead), at(nu, place) * at(mu, place + stride[nu]));
    sum = sum + su3::adjoint_times(at(mu, down) * at(nu, ahead - stride[nu]), at(nu, down));
  }
  return sum;
}

template <class Update>
void Gauge::Impl::sweep(Update&& update) {
  for (const std::int64_t extent : geometry.spec().extents) {
    if (extent % 2 != 0) {
      throw BadInput("gauge field: expected even extents, where links of one colour do not touch, found " +
                     std::to_string(extent));
    }
  }
  for (std::size_t mu = 0; mu < dims; ++mu) {
    for (const std::int64_t colour : {0, 1}) {
      each_site([&](std::size_t place, const std::array<std::int64_t, 4>& global, std::uint64_t number) {
        if ((global[0] + global[1] + global[2] + global[3]) % 2 != colour) return;
        Link link = at(mu, place);
        update(link, staples(place, mu), number, mu);
        su3::reunitarise(link);
        put(mu, place, link);
      });
      plans[mu].run();
    }
  }
}

Gauge::Gauge(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid)
    : impl_(std::make_unique<Impl>(group, checked(std::move(extents), std::move(grid), group.size()))) {}
Gauge::Gauge(Gauge&&) noexcept = default;
Gauge& Gauge::operator=(Gauge&&) noexcept = default;
Gauge::~Gauge() = default;

const Group& Gauge::group() const noexcept { return impl_->group; }
const Geometry& Gauge::geometry() const noexcept { return impl_->geometry; }

void Gauge::set_links(std::span<const Number> links) {
  const auto expected = static_cast<std::size_t>(impl_->geometry.sites()) * impl_->dims * link_numbers;
  if (links.size() != expected) {
    throw BadInput("gauge field: expected " + std::to_string(expected) + " complex numbers (sites of the block, " +
                   std::to_string(impl_->dims) + " directions, 3 rows, 3 columns), found " +
                   std::to_string(links.size()));
  }
  std::size_t site = 0;
  impl_->each_site([&](std::size_t place, const auto&, std::uint64_t) {
    for (std::size_t d = 0; d < impl_->dims; ++d) {
      std::copy_n(links.data() + (site * impl_->dims + d) * link_numbers, link_numbers,
                  impl_->links[d].data() + place * link_numbers);
    }
    ++site;
  });
  impl_->exchange();
}

std::vector<Number> Gauge::links() const {
  std::vector<Number> links;
  links.reserve(static_cast<std::size_t>(impl_->geometry.sites()) * impl_->dims * link_numbers);
  impl_->each_site([&](std::size_t place, const auto&, std::uint64_t) {
    for (const auto& of_direction : impl_->links) {
      const Number* from = of_direction.data() + place * link_numbers;
      links.insert(links.end(), from, from + link_numbers);
    }
  });
  return links;
}

void Gauge::set_random(std::uint64_t seed) {
  impl_->each_site([&](std::size_t place, const auto&, std::uint64_t number) {
    for (std::size_t d = 0; d < impl_->dims; ++d) {
      detail::Random random(seed, number * 4 + d, 0, 1);
      impl_->put(d, place, detail::random_link(random));
    }
  });
  impl_->exchange();
}

Plaquettes Gauge::plaquettes() const {
  std::array<ExactSum, 2> sums;  // space, time
  const std::size_t dims = impl_->dims;
  impl_->each_site([&](std::size_t place, const auto&, std::uint64_t) {
    for (std::size_t nu = 1; nu < dims; ++nu) {
      for (std::size_t mu = 0; mu < nu; ++mu) sums[nu + 1 == dims ? 1 : 0].add(impl_->plaquette(place, mu, nu) / 3);
    }
  });
  ExactSum::over_ranks(impl_->group, sums);
  double sites = 1;
  for (const std::int64_t extent : impl_->geometry.spec().extents) sites *= static_cast<double>(extent);
  const double in_time = sites * static_cast<double>(dims - 1);
  const double in_space = in_time * static_cast<double>(dims - 2) / 2;
  return {(sums[0].value() + sums[1].value()) / (in_space + in_time), in_space > 0 ? sums[0].value() / in_space : 0,
          sums[1].value() / in_time};
}

double Gauge::link_trace() const {
  std::array<ExactSum, 1> sum;
  impl_->each_site([&](std::size_t place, const auto&, std::uint64_t) {
    for (std::size_t d = 0; d < impl_->dims; ++d) sum[0].add(su3::real_trace(impl_->at(d, place)) / 3);
  });
  ExactSum::over_ranks(impl_->group, sum);
  double links = static_cast<double>(impl_->dims);
  for (const std::int64_t extent : impl_->geometry.spec().extents) links *= static_cast<double>(extent);
  return sum[0].value() / links;
}

GaugeDeviation Gauge::deviation() const {
  struct Worst {
    double value = -1;
    std::array<std::int64_t, 4> site{};
    std::uint64_t number = 0;
    std::int64_t direction = 0;
  };
  Worst worst;
  impl_->each_site([&](std::size_t place, const std::array<std::int64_t, 4>& global, std::uint64_t number) {
    for (std::size_t d = 0; d < impl_->dims; ++d) {
      const double found = su3::deviation(impl_->at(d, place));
      if (found > worst.value) worst = {found, global, number, static_cast<std::int64_t>(d)};
    }
  });
  for (const auto& bytes : impl_->group.allgather(std::as_bytes(std::span(&worst, 1)))) {
    Worst other;
    std::memcpy(&other, bytes.data(), sizeof other);
    if (other.value > worst.value || (other.value == worst.value && other.number < worst.number)) worst = other;
  }
  return {worst.value,
          {worst.site.begin(), worst.site.begin() + static_cast<std::ptrdiff_t>(impl_->dims)},
          static_cast<int>(worst.direction)};
}

void Gauge::reunitarise() {
  impl_->each_site([&](std::size_t place, const auto&, std::uint64_t) {
    for (std::size_t d = 0; d < impl_->dims; ++d) {
      Link link = impl_->at(d, place);
      su3::reunitarise(link);
      impl_->put(d, place, link);
    }
  });
  impl_->exchange();
}

void Gauge::heat_bath(double beta, std::uint64_t seed, std::uint32_t sweep) {
  if (!(beta >= 0 && beta <= 1e6))
    throw BadInput("gauge field: expected a beta from 0 to 1e6, found " + std::to_string(beta));
  impl_->sweep([&](Link& link, const Link& staples, std::uint64_t number, std::size_t direction) {
    detail::Random random(seed, number * 4 + direction, sweep, 2);
    detail::heat_bath_link(link, staples, beta, random);
  });
}

void Gauge::over_relax() {
  impl_->sweep(
      [](Link& link, const Link& staples, std::uint64_t, std::size_t) { detail::over_relax_link(link, staples); });
}

}  // namespace onehop::lattice
