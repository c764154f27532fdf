#include "onehop/lattice/flow.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "clover_leaves.h"
#include "exact_sum.h"
#include "matrix_functions.h"
#include "onehop/error.h"

namespace onehop::lattice {

using detail::LinkFields;
using detail::MatrixSpace;

struct Flow::Impl {
  explicit Impl(const Gauge& gauge)
      : space(gauge.group(), gauge.geometry()), links(space), slopes(space), leaves(space) {
    links.load(gauge.links());
  }

  // slopes = new_part (slope of now) + old_part slopes; then links = exp(slopes) links.
  void stage(double new_part, double old_part);

  MatrixSpace space;
  LinkFields links;
  LinkFields slopes;
  detail::CloverLeaves leaves;
  double time = 0;
};

void Flow::Impl::stage(double new_part, double old_part) {
  links.fill_all();
  const int dims = space.dims();
  const detail::Steps steps = detail::steps_of(space);
  for (int mu = 0; mu < dims; ++mu) {
    double* slope = slopes[mu].data();
    const auto find = [=, from = links.data()](auto sites) {
      const auto around = detail::sum_of_staples(sites, from, steps, dims, mu);
      const auto turn = detail::traceless_antihermitian(times_adjoint(around, sites.load(from[mu])));
      sites.store(slope, sites.all(new_part) * turn + sites.all(old_part) * sites.load(slope));
    };
    auto rows = detail::staples_ahead(space, links.data(), dims, mu);
    rows.add(slope);
    detail::each_site(space, detail::Asking{find, rows});
  }
  for (int mu = 0; mu < dims; ++mu) {
    const double* slope = slopes[mu].data();
    double* link = links[mu].data();
    const auto turn = [=](auto sites) {
      sites.store(link, detail::exponential_antihermitian(sites.load(slope)) * sites.load(link));
    };
    detail::RowsAhead<double> rows(space);
    rows.add(slope);
    rows.add(link);
    detail::each_site(space, detail::Asking{turn, rows});
  }
}

Flow::Flow(const Gauge& gauge) : impl_(std::make_unique<Impl>(gauge)) {}
Flow::Flow(Flow&&) noexcept = default;
Flow& Flow::operator=(Flow&&) noexcept = default;
Flow::~Flow() = default;

double Flow::time() const noexcept { return impl_->time; }

// With Z_i the slope after i stages, the exponents are Z_0 / 4, 8/9 Z_1 - 17/36 Z_0, 3/4 Z_2 - 8/9 Z_1 + 17/36 Z_0: each is made
// of the one before.
void Flow::step(double epsilon) {
  if (!(epsilon > 0 && epsilon <= 1))
    throw BadInput("flow: expected a step above 0 and at most 1, found " + std::to_string(epsilon));
  impl_->stage(epsilon / 4, 0);
  impl_->stage(epsilon * 8 / 9, -17.0 / 9);
  impl_->stage(epsilon * 3 / 4, -1);
  impl_->time += epsilon;
}

FieldStrength Flow::field_strength() {
  impl_->links.fill_ahead();
  return impl_->leaves.measure(impl_->links);
}

void Flow::copy_to(Gauge& gauge) const { gauge.set_links(impl_->links.store()); }

FieldStrength field_strength(const Gauge& gauge) {
  const MatrixSpace space(gauge.group(), gauge.geometry());
  LinkFields links(space);
  detail::CloverLeaves leaves(space);
  links.load(gauge.links());
  links.fill_ahead();
  return leaves.measure(links);
}

// Products go from rank to rank in time, one rank after the other, so that every product is multiplied in the same order.
std::complex<double> polyakov_loop(const Gauge& gauge) {
  using Link = su3::Matrix<double>;
  const Geometry& geometry = gauge.geometry();
  const Group& group = gauge.group();
  const auto dims = static_cast<std::size_t>(geometry.dims());
  const auto last = dims - 1;
  const auto times = static_cast<std::size_t>(geometry.block()[last]);
  const std::size_t space = static_cast<std::size_t>(geometry.sites()) / times;
  const auto links = gauge.links();
  std::vector<Link> products(space, Link::one());
  const std::vector<int> at = geometry.coordinates(group.rank());
  const int ranks_in_time = geometry.spec().grid[last];
  for (int turn = 0; turn < ranks_in_time; ++turn) {
    if (turn > 0) {
      const auto all = group.allgather(std::as_bytes(std::span(products)));
      std::vector<int> below = at;
      below[last] -= 1;
      std::memcpy(products.data(), all[static_cast<std::size_t>(geometry.rank_at(below))].data(), space * sizeof(Link));
    }
    if (at[last] != turn) continue;
    for (std::size_t t = 0; t < times; ++t) {
      for (std::size_t i = 0; i < space; ++i)
        products[i] = products[i] * su3::load(links.data() + ((t * space + i) * dims + last) * 9);
    }
  }
  std::array<detail::ExactSum, 2> sums;
  if (at[last] == ranks_in_time - 1) {
    for (const Link& product : products) {
      sums[0].add(su3::real_trace(product) / 3);
      sums[1].add((product.e[0][0].im + product.e[1][1].im + product.e[2][2].im) / 3);
    }
  }
  detail::ExactSum::over_ranks(group, sums);
  double sites = 1;
  for (std::size_t d = 0; d < last; ++d) sites *= static_cast<double>(geometry.spec().extents[d]);
  return {sums[0].value() / sites, sums[1].value() / sites};
}

}  // namespace onehop::lattice
