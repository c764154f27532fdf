#include "onehop/lattice/flow.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lattice/gauge/clover_leaves.h"
#include "lattice/gauge/improved_force.h"
#include "lattice/gauge/link_moves.h"
#include "lattice/support/exact_sum.h"
#include "lattice/support/over_ranks.h"
#include "onehop/error.h"
#include "src/base/one_size.h"
#include "src/base/text.h"
#include "src/group/require_same.h"

namespace onehop::lattice {

using detail::CloverLeaves;
using detail::LinkFields;
using detail::MatrixSpace;

namespace {

void check_step(double epsilon) {
  if (!(epsilon > 0 && epsilon <= 1))
    throw BadInput("flow: expected a step above 0 and at most 1, found " + onehop::base::number_text(epsilon));
}

// The factor by which to change the length of a step with this error, which grows with its third power.
double step_factor(double error, double tolerance) {
  const double wanted = std::isfinite(error) ? 0.95 * std::cbrt(tolerance / std::max(error, 1e-300)) : 0.0;
  return std::clamp(wanted, 0.1, 5.0);
}

// Links, slopes, and the two sets of fields of error control; the links are copied when they are loaded.
MatrixSpace& with_memory(MatrixSpace& space, FlowAction action) {
  const int of_force = action == FlowAction::wilson ? 0 : detail::ImprovedForce::fields(space.dims());
  space.require_memory<double>(4 * space.dims() + CloverLeaves::fields + of_force, 1, "the gradient flow");
  return space;
}

}  // namespace

struct Flow::Impl {
  // The links at the start of a step, and the exponent of the embedded second-order method.
  struct Embedded {
    explicit Embedded(const MatrixSpace& space) : start(space), exponent(space), differences(space.sites()) {}

    LinkFields start;
    LinkFields exponent;
    std::vector<double> differences;
  };

  Impl(const Gauge& gauge, FlowAction followed)
      : action(followed),
        space(gauge.group(), gauge.geometry()),
        links(with_memory(space, followed)),
        slopes(space),
        leaves(space) {
    if (action != FlowAction::wilson) improved.emplace(space, action == FlowAction::zeuthen);
    links.load(gauge.links());
  }

  // Before a step: its length and tolerance must be the same on all ranks.
  void require_same(const char* function, double epsilon, double tolerance = 0) const {
    onehop::detail::require_same(space.group(), function, {{"epsilon", epsilon}, {"tolerance", tolerance}});
  }
  // slopes = new_part * (slope at the current links) + old_part * slopes; then links = exp(slopes) links.
  void stage(double new_part, double old_part);
  // exponent of the embedded method = or += weight * slopes.
  void note_slopes(double weight, bool first);
  // The largest difference of a link between the two methods, over all ranks.
  double difference();
  double try_step(double epsilon, double tolerance);

  FlowAction action;
  MatrixSpace space;
  LinkFields links;
  LinkFields slopes;
  CloverLeaves leaves;
  std::optional<detail::ImprovedForce> improved;
  std::unique_ptr<Embedded> embedded;
  double time = 0;
};

void Flow::Impl::stage(double new_part, double old_part) {
  if (improved) {
    improved->add(links, slopes, new_part, old_part);
  } else {
    detail::add_forces(links, slopes, new_part, old_part);
  }
  detail::move_links(links, slopes, 1);
}

void Flow::Impl::note_slopes(double weight, bool first) {
  for (int mu = 0; mu < space.dims(); ++mu) {
    const double* slope = slopes[mu].data();
    double* exponent = embedded->exponent[mu].data();
    detail::each_site(space, [=](auto sites) {
      const auto more = sites.all(weight) * sites.load(slope);
      sites.store(exponent, first ? more : sites.load(exponent) + more);
    });
  }
}

double Flow::Impl::difference() {
  double largest = 0;
  for (int mu = 0; mu < space.dims(); ++mu) {
    const double* start = embedded->start[mu].data();
    const double* exponent = embedded->exponent[mu].data();
    const double* link = links[mu].data();
    double* differences = embedded->differences.data();
    detail::each_site(space, [=](auto sites) {
      using detail::operator-;
      const auto other = detail::exponential_antihermitian(sites.load(exponent)) * sites.load(start);
      sites.store_real(differences, detail::norm_squared(sites.load(link) - other));
    });
    for (const double one : embedded->differences) largest = std::max(largest, std::isfinite(one) ? one : HUGE_VAL);
  }
  detail::largest_over_ranks(space.group(), std::span(&largest, 1));
  return std::sqrt(largest);
}

// The embedded method has the exponent 2 Z_1 - Z_0 = A_1 / 4 + 9/4 A_2, with the exponents A_1 and A_2 of the first two
// stages.
double Flow::Impl::try_step(double epsilon, double tolerance) {
  if (!embedded) embedded = std::make_unique<Embedded>(space);
  for (int mu = 0; mu < space.dims(); ++mu) std::copy_n(links[mu].data(), space.numbers(), embedded->start[mu].data());
  stage(epsilon / 4, 0);
  note_slopes(1.0 / 4, true);
  stage(epsilon * 8 / 9, -17.0 / 9);
  note_slopes(9.0 / 4, false);
  stage(epsilon * 3 / 4, -1);
  const double error = difference();
  if (error <= tolerance) {
    time += epsilon;
  } else {
    for (int mu = 0; mu < space.dims(); ++mu)
      std::copy_n(embedded->start[mu].data(), space.numbers(), links[mu].data());
  }
  return error;
}

double longest_stable_flow_step(int dims, FlowAction action) {
  const double faster = action == FlowAction::wilson ? 1 : action == FlowAction::symanzik ? 5.0 / 3 : 10.0 / 9;
  return 2.51 / (4 * dims * faster);
}

Flow::Flow(const Gauge& gauge, FlowAction action) {
  onehop::detail::require_same(gauge.group(), "Flow", {{"action", action}});
  impl_ = std::make_unique<Impl>(gauge, action);
}
Flow::Flow(Flow&&) noexcept = default;
Flow& Flow::operator=(Flow&&) noexcept = default;
Flow::~Flow() = default;

double Flow::time() const noexcept { return impl_->time; }

// With the slope Z_i after i stages, the exponents are Z_0 / 4, 8/9 Z_1 - 17/36 Z_0 and 3/4 Z_2 - 8/9 Z_1 + 17/36 Z_0.
// Each is computed from the previous one, so one field of slopes is enough.
void Flow::step(double epsilon) {
  impl_->require_same("step", epsilon);
  check_step(epsilon);
  impl_->stage(epsilon / 4, 0);
  impl_->stage(epsilon * 8 / 9, -17.0 / 9);
  impl_->stage(epsilon * 3 / 4, -1);
  impl_->time += epsilon;
}

double Flow::try_step(double epsilon, double tolerance) {
  impl_->require_same("try_step", epsilon, tolerance);
  check_step(epsilon);
  if (!(tolerance > 0))
    throw BadInput("flow: expected a tolerance above 0, found " + onehop::base::number_text(tolerance));
  return impl_->try_step(epsilon, tolerance);
}

FlowStep Flow::step_within(double epsilon, double tolerance) {
  impl_->require_same("step_within", epsilon, tolerance);
  check_step(epsilon);
  if (!(tolerance >= 1e-12 && tolerance <= 1))
    throw BadInput("flow: expected a tolerance of 1e-12 to 1, found " + onehop::base::number_text(tolerance));
  const double longest = longest_stable_flow_step(impl_->space.dims(), impl_->action);
  epsilon = std::min(epsilon, longest);
  for (int attempt = 0; attempt < 100 && epsilon > 1e-12; ++attempt) {
    const double error = impl_->try_step(epsilon, tolerance);
    if (error <= tolerance) return {epsilon, error, std::min(longest, epsilon * step_factor(error, tolerance))};
    epsilon *= std::min(0.9, step_factor(error, tolerance));
  }
  throw Error("flow: expected short steps to have an error of at most " + onehop::base::number_text(tolerance) +
              ", found more with a step of " + onehop::base::number_text(epsilon) +
              " at t = " + onehop::base::number_text(impl_->time) +
              "; check that the links are in SU(3), or take a larger tolerance");
}

FieldStrength Flow::field_strength() {
  impl_->links.fill_ahead();
  return impl_->leaves.measure(impl_->links);
}

void Flow::copy_to(Gauge& gauge) const { gauge.set_links(impl_->links.store()); }

FieldStrength field_strength(const Gauge& gauge) {
  const MatrixSpace space(gauge.group(), gauge.geometry());
  space.require_memory<double>(space.dims() + CloverLeaves::fields, 1, "the field strength");
  LinkFields links(space);
  CloverLeaves leaves(space);
  links.load(gauge.links());
  links.fill_ahead();
  return leaves.measure(links);
}

// Partial products pass from rank to rank along time, so that every grid multiplies in the same order.
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
      const auto own = std::as_bytes(std::span(products));
      const auto all = base::of_one_size(group.allgather(own), own.size());
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
