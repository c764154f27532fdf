#include "onehop/lattice/staggered.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "lattice/geometry/memory_need.h"
#include "lattice/solver/same_call.h"
#include "lattice/solver/source_scale.h"
#include "lattice/staggered/staggered_solver.h"
#include "onehop/error.h"
#include "onehop/lattice/smearing.h"
#include "src/base/text.h"
#include "src/base/thread_count.h"

namespace onehop::lattice {

namespace {

using Number = std::complex<double>;

Geometry vector_geometry(std::vector<std::int64_t> extents, std::vector<int> grid, std::vector<int> rank_at, int width,
                         int max_lanes) {
  if (max_lanes < 1) throw BadInput("staggered: expected 1 lane or more, found " + std::to_string(max_lanes));
  GeometrySpec spec{std::move(extents), std::move(grid)};
  spec.width = width;
  spec.parities = 2;
  spec.rank_at = std::move(rank_at);
  spec.lanes = geometry_lanes(spec, std::min(max_lanes, 8));
  return Geometry(spec);
}

constexpr double table_bytes = 16;  // of a site and direction, for neighbours and places

std::vector<Number> with_phases(std::vector<Number> links, const Gauge& gauge, const StaggeredOptions& options,
                                int length = 1) {
  onehop::detail::require_same(gauge.group(), "Staggered",
                               {{"antiperiodic", options.antiperiodic}, {"phases", options.phases}});
  multiply_staggered_phases(links, gauge.geometry(), gauge.group().rank(), length, options.antiperiodic,
                            options.phases);
  return links;
}

void check_links(std::span<const Number> links, const Geometry& geometry, const char* kind) {
  const std::int64_t expected = geometry.sites() * geometry.dims() * 9;
  if (static_cast<std::int64_t>(links.size()) == expected) return;
  throw BadInput(std::string("staggered: expected ") + kind + " links of " + std::to_string(expected) +
                 " complex numbers (a 3x3 matrix for each site of the block and each direction), found " +
                 std::to_string(links.size()));
}

detail::DslashLattice lattice_of(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid,
                                 std::vector<int> rank_at, std::span<const Number> fat,
                                 std::span<const Number> long_links, int lanes) {
  Geometry geometry =
      vector_geometry(std::move(extents), std::move(grid), std::move(rank_at), long_links.empty() ? 1 : 3, lanes);
  if (geometry.ranks() != group.size()) {
    throw BadInput("staggered: expected a grid of " + base::counted(group.size(), "rank") + ", found one of " +
                   std::to_string(geometry.ranks()));
  }
  check_links(fat, geometry, "fat");
  const double places = static_cast<double>(geometry.vectors() + geometry.ghosts()) * geometry.spec().lanes;
  const double kinds = (long_links.empty() ? 1.0 : 2.0) * geometry.dims();
  detail::require_memory_for(group, geometry.spec().extents,
                             places * (kinds * (detail::matrix_bytes + table_bytes) + table_bytes),
                             "a staggered operator");
  std::vector<std::span<const Number>> given{fat};
  if (!long_links.empty()) {
    check_links(long_links, geometry, "long");
    given.push_back(long_links);
  }
  return {group, std::move(geometry), given};
}

void check_mass(double mass) {
  if (mass > 0 && std::isfinite(mass)) return;
  throw BadInput("staggered: expected a mass above 0, found " + onehop::base::number_text(mass) +
                 "; the massless operator may be singular");
}

void check_finite(double mass) {
  if (!std::isfinite(mass))
    throw BadInput("staggered: expected a finite mass, found " + onehop::base::number_text(mass));
}

void check(const SolverOptions& options) {
  if (!(options.tolerance > 0) || options.iterations < 0)
    throw BadInput("staggered: expected a tolerance above 0 and 0 iterations or more, found " +
                   onehop::base::number_text(options.tolerance) + " and " + std::to_string(options.iterations));
  if (options.precision == Precision::half)
    throw BadInput("staggered: expected precision single or double, found half; use it as the sloppy precision");
  check_half_halo(options);
}

}  // namespace

void multiply_staggered_phases(std::span<Number> links, const Geometry& geometry, int rank, int length,
                               bool antiperiodic, StaggeredPhases phases) {
  const auto dims = static_cast<std::size_t>(geometry.dims());
  check_links(links, geometry, "the");
  const auto origin = geometry.origin(rank);
  for (std::int64_t site = 0; site < geometry.sites(); ++site) {
    std::int64_t remaining = site;
    std::int64_t before = 0;  // the sum of the coordinates in earlier directions
    if (phases == StaggeredPhases::milc)
      before = origin[dims - 1] + site / (geometry.sites() / geometry.block()[dims - 1]);
    for (std::size_t mu = 0; mu < dims; ++mu) {
      const std::int64_t at = origin[mu] + remaining % geometry.block()[mu];
      remaining /= geometry.block()[mu];
      if (phases == StaggeredPhases::milc && mu + 1 == dims) before = 0;
      std::int64_t signs = before;
      if (antiperiodic && mu + 1 == dims) signs += (at + length) / geometry.spec().extents[mu];
      if (signs % 2 != 0) {
        Number* link = links.data() + (static_cast<std::size_t>(site) * dims + mu) * 9;
        for (std::size_t i = 0; i < 9; ++i) link[i] = -link[i];
      }
      before += at;
    }
  }
}

struct Staggered::Impl {
  Impl(detail::DslashLattice lattice, int threads, const detail::StaggeredParts& parts)
      : solver(std::move(lattice), threads, parts) {}

  detail::StaggeredSolver solver;

  [[nodiscard]] const Geometry& geometry() const { return solver.lattice().geometry; }
  [[nodiscard]] const Group& group() const { return solver.lattice().group; }
  [[nodiscard]] std::size_t length() const { return solver.lattice().sites.size() * 3; }
  [[nodiscard]] int num_rhs(std::span<const Number> fields) const {
    if (fields.empty() || fields.size() % length() != 0) {
      throw BadInput("staggered: expected one or more fields of " + std::to_string(length()) +
                     " complex numbers (three per site of the block), found " + std::to_string(fields.size()));
    }
    return static_cast<int>(fields.size() / length());
  }

  // Solves M x = b for each mass, or with `squares` M^dagger M x = b.
  StaggeredSolve solve_several(std::span<const Number> source, std::span<const double> masses,
                               const SolverOptions& options, bool squares) {
    if (num_rhs(source) != 1) throw BadInput("staggered: expected one right-hand side for several masses or shifts");
    if (masses.empty()) throw BadInput("staggered: expected one mass or shift or more, found none");
    for (const double mass : masses) check_mass(mass);
    check(options);
    const double vectors = 6 * static_cast<double>(masses.size());
    detail::require_memory_for(solver.lattice().group, geometry().spec().extents,
                               vectors * static_cast<double>(geometry().sites()) * 6 * sizeof(double),
                               "solutions of staggered quarks");
    const detail::SourceScale scale(solver.lattice().group, source, 1);
    StaggeredSolve found = solver.solve_masses(scale.sources(), masses, options, squares);
    scale.restore(found.solutions);
    return found;
  }

  // Loads the fields into `dslash`, calls body(dslash, out) and returns `out`, all in lexicographic order.
  template <class Body>
  std::vector<Number> with_fields(std::span<const Number> fields, Precision precision, Body&& body) {
    const int count = num_rhs(fields);
    return detail::with_precision(precision, [&]<class Link, class Real>() {
      detail::DslashField<Link, Real>& dslash = solver.template dslash<Link, Real>(count);
      const auto& sites = solver.lattice().sites;
      for (int rhs = 0; rhs < count; ++rhs)
        load_lexicographic(fields.subspan(static_cast<std::size_t>(rhs) * length(), length()), sites, dslash.field,
                           rhs);
      const detail::Field<Real> out(dslash.field.shape, false);
      body(dslash, out);
      std::vector<Number> result(fields.size());
      for (int rhs = 0; rhs < count; ++rhs)
        store_lexicographic(out, sites, std::span(result).subspan(static_cast<std::size_t>(rhs) * length(), length()),
                            rhs);
      return result;
    });
  }
};

Staggered::Staggered(const Gauge& gauge, const StaggeredOptions& options)
    : Staggered(gauge.group(), gauge.geometry().spec().extents, gauge.geometry().spec().grid,
                with_phases(gauge.links(), gauge, options), {}, options, gauge.geometry().spec().rank_at) {}
Staggered::Staggered(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid,
                     std::span<const Number> fat_links, std::span<const Number> long_links,
                     const StaggeredOptions& options, std::vector<int> rank_at)
    : Staggered(group, std::move(extents), std::move(grid), fat_links, long_links, options, detail::StaggeredParts{},
                std::move(rank_at)) {}
Staggered::Staggered(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid,
                     std::span<const Number> fat_links, std::span<const Number> long_links,
                     const StaggeredOptions& options, const detail::StaggeredParts& parts, std::vector<int> rank_at) {
  onehop::detail::require_same(group, "Staggered",
                               {{"extents", extents},
                                {"grid", grid},
                                {"rank_at", rank_at},
                                {"long_links", !long_links.empty()},
                                {"lanes", options.lanes}});
  // Both are collective, so their order must be the same on every rank.
  auto lattice =
      lattice_of(group, std::move(extents), std::move(grid), std::move(rank_at), fat_links, long_links, options.lanes);
  const int threads = base::thread_count(options.threads, group);
  impl_ = std::make_unique<Impl>(std::move(lattice), threads, parts);
}
Staggered Staggered::from_gauge(const Gauge& gauge, StaggeredAction action, const StaggeredOptions& options) {
  onehop::detail::require_same(gauge.group(), "Staggered", {{"action", action}, {"u0", options.u0}});
  if (action == StaggeredAction::naive) return Staggered(gauge, options);
  FatLinks links;
  if (action == StaggeredAction::asqtad) {
    links = fat_links(gauge, asqtad_weights(options.u0));
  } else {
    HisqLinks hisq = hisq_links(gauge);
    links = {std::move(hisq.fat), std::move(hisq.long_links)};
  }
  const GeometrySpec& spec = gauge.geometry().spec();
  const auto fat = with_phases(std::move(links.fat), gauge, options);
  const auto long_links = with_phases(std::move(links.long_links), gauge, options, 3);
  return {gauge.group(), spec.extents, spec.grid, fat, long_links, options, spec.rank_at};
}
Staggered::Staggered(Staggered&&) noexcept = default;
Staggered& Staggered::operator=(Staggered&&) noexcept = default;
Staggered::~Staggered() = default;

const Geometry& Staggered::geometry() const noexcept { return impl_->geometry(); }
bool Staggered::has_long_links() const noexcept { return impl_->solver.lattice().kinds() > geometry().dims(); }
int Staggered::threads() const noexcept { return impl_->solver.pool().size(); }
std::int64_t Staggered::link_bytes(Precision precision) const { return impl_->solver.link_bytes(precision); }

std::vector<Number> Staggered::dslash(std::span<const Number> fields, Precision precision, int parity) {
  detail::require_same(impl_->group(), "dslash", fields, {{"precision", precision}, {"parity", parity}});
  if (parity < -1 || parity > 1) throw BadInput("staggered: expected parity 0 or 1, found " + std::to_string(parity));
  return impl_->with_fields(fields, precision, [&](auto& dslash, const auto& out) {
    for (const int each : {0, 1}) {
      if (parity < 0 || parity == each) dslash.apply(each, {.out = out.data()});
    }
  });
}

std::vector<Number> Staggered::apply(std::span<const Number> fields, double mass, bool dagger, Precision precision) {
  detail::require_same(impl_->group(), "apply", fields, {{"mass", mass}, {"dagger", dagger}, {"precision", precision}});
  check_finite(mass);
  return impl_->with_fields(fields, precision, [&](auto& dslash, const auto& out) {
    for (const int each : {0, 1})
      dslash.apply(each, {.out = out.data(),
                          .dslash_factor = dagger ? -1.0 : 1.0,
                          .own = dslash.field.data(),
                          .own_factor = 2 * mass});
  });
}

std::vector<Number> Staggered::apply_mdagm(std::span<const Number> fields, double mass, Precision precision) {
  detail::require_same(impl_->group(), "apply_mdagm", fields, {{"mass", mass}, {"precision", precision}});
  check_finite(mass);
  return impl_->with_fields(fields, precision, [&](auto& dslash, const auto& out) {
    const detail::DslashLattice& lattice = impl_->solver.lattice();
    detail::Sums& sums = impl_->solver.sums(out.shape.num_rhs, false);
    const auto normal = [&]<class Link, class Real>(detail::DslashField<Link, Real>& field) {
      const detail::Field<Real> in(out.shape, false);
      std::ranges::copy(field.field.memory.span().first(static_cast<std::size_t>(in.shape.size())), in.data());
      for (const int each : {0, 1}) {
        const std::int64_t first = lattice.begin(each) * out.shape.element();
        detail::NormalOperator<Link, Real> op(field, sums, each, mass);
        op.apply(in.data() + first, out.data() + first);
      }
    };
    normal(dslash);
  });
}

StaggeredSolve Staggered::solve(std::span<const Number> sources, double mass, const SolverOptions& options) {
  detail::require_same(impl_->group(), "solve", sources, {{"mass", mass}}, &options);
  const int num_rhs = impl_->num_rhs(sources);
  check_mass(mass);
  check(options);
  const detail::SourceScale scale(impl_->group(), sources, num_rhs);
  StaggeredSolve found = impl_->solver.solve(scale.sources(), mass, options);
  scale.restore(found.solutions);
  return found;
}

StaggeredSolve Staggered::solve_masses(std::span<const Number> source, std::span<const double> masses,
                                       const SolverOptions& options) {
  detail::require_same(impl_->group(), "solve_masses", source, {{"mass", masses}}, &options);
  return impl_->solve_several(source, masses, options, false);
}

StaggeredSolve Staggered::solve_shifts(std::span<const Number> source, double mass, std::span<const double> shifts,
                                       const SolverOptions& options) {
  detail::require_same(impl_->group(), "solve_shifts", source, {{"mass", mass}, {"shifts", shifts}}, &options);
  std::vector<double> masses;
  for (const double shift : shifts) {
    const double square = 4 * mass * mass + shift;
    if (!(square > 0 && std::isfinite(square)))
      throw BadInput("staggered: expected 4 m^2 + shift above 0, found " + onehop::base::number_text(square));
    masses.push_back(std::sqrt(square) / 2);
  }
  return impl_->solve_several(source, masses, options, true);
}

std::vector<Number> Staggered::filter(std::span<const Number> field, int degree, double low, double high) {
  detail::require_same(impl_->group(), "filter", field, {{"degree", degree}, {"low", low}, {"high", high}});
  if (impl_->num_rhs(field) != 1 || degree < 0 || !(low >= 0 && low < high && std::isfinite(high)))
    throw BadInput("staggered: expected one field, a degree of 0 or more, and 0 <= low < high, found the degree " +
                   std::to_string(degree) + ", " + onehop::base::number_text(low) + " and " +
                   onehop::base::number_text(high));
  return impl_->solver.filter(field, degree, low, high);
}

}  // namespace onehop::lattice
