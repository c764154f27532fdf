#include "lattice/staggered/staggered_solver.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "lattice/geometry/memory_need.h"
#include "lattice/solver/refinement.h"
#include "src/base/clock.h"

namespace onehop::lattice::detail {

namespace {

using Number = std::complex<double>;

// The factor by which |r| falls between two reliable updates.
double reduction_of(Precision sloppy) { return sloppy == Precision::half ? 0.1 : 0.05; }
// The |r| / |b| at which iterations in this precision alone stop; further ones would gain nothing but rounding errors.
double attainable_of(Precision precision) {
  if (precision == Precision::double_) return 0;
  return precision == Precision::single ? 2e-6 : 1e-3;
}

// One solve in one outer precision. Sources and solutions are in lexicographic order.
template <class Link, class Real>
class Run {
 public:
  Run(StaggeredSolver& solver, int num_rhs, const SolverOptions& options)
      : solver_(solver),
        options_(options),
        lattice_(solver.lattice()),
        num_rhs_(static_cast<std::size_t>(num_rhs)),
        dslash_(solver.dslash<Link, Real>(num_rhs)),
        sums_(solver.sums(num_rhs, options.reproducible)),
        whole_(solver.pool(), sums_, field_shape(lattice_.geometry, 3, num_rhs)),
        source_(whole_.shape(), false),
        norms_(num_rhs_),
        begin_(base::steady_seconds()),
        before_(dslash_.counters),
        waited_before_(sums_.waited()) {}

  void load(std::span<const Number> sources) {
    const std::size_t length = lattice_.sites.size() * 3;
    for (std::size_t rhs = 0; rhs < num_rhs_; ++rhs)
      load_lexicographic(sources.subspan(rhs * length, length), lattice_.sites, source_, static_cast<int>(rhs));
    whole_.norm(source_.data(), norms_);
    check_sources(norms_);
  }

  // Even-odd decomposition of M x = b: (4 m^2 - D D) x_e = 2 m b_e - D b_o on even sites, then x_o = (b_o - D x_e) / 2
  // m.
  void solve(double mass) {
    Field<Real> x(whole_.shape(), false);
    NormalOperator<Link, Real> normal(dslash_, sums_, 0, mass);
    const Buffer<Real> right = normal.space().make(), residual = normal.space().make();
    put(source_, 1);
    dslash_.apply(0, {.out = right.data(),
                      .begin = lattice_.begin(0),
                      .dslash_factor = -1,
                      .own = part(source_, 0),
                      .own_factor = 2 * mass});
    normal.space().copy(right.data(), residual.data());
    // The even system's residual is 2 m times that of the whole one.
    const Stopping stopping = stopping_rule(options_, 0, norms_, 4 * mass * mass);
    solve_normal(normal, 0, mass, right.data(), part(x, 0), residual.data(), stopping);
    put(x, 0);
    dslash_.apply(1, {.out = part(x, 1),
                      .begin = lattice_.begin(1),
                      .dslash_factor = -0.5 / mass,
                      .own = part(source_, 1),
                      .own_factor = 0.5 / mass});
    add_counts(normal.space());
    accept(x, mass);
  }

  // x = (2 m - D) y with (4 m^2 - D D) y = b. The right-hand side is the same for all masses, and the even and odd
  // sites decouple.
  void solve_masses(std::span<const double> masses) {
    const std::vector<Field<Real>> y = solve_normal_systems(masses);
    for (std::size_t i = 0; i < masses.size(); ++i) {
      Field<Real> x(whole_.shape(), false);
      put(y[i], 0);
      put(y[i], 1);
      for (const int parity : {0, 1}) {
        dslash_.apply(parity, {.out = part(x, parity),
                               .begin = lattice_.begin(parity),
                               .dslash_factor = -1,
                               .own = part(y[i], parity),
                               .own_factor = 2 * masses[i]});
      }
      accept(x, masses[i]);
    }
  }

  // (4 m^2 - D D) x = b for each of the masses.
  void solve_squares(std::span<const double> masses) {
    const std::vector<Field<Real>> x = solve_normal_systems(masses);
    for (std::size_t i = 0; i < masses.size(); ++i) {
      const Field<Real> residual(whole_.shape(), false);
      for (const int parity : {0, 1}) {
        NormalOperator<Link, Real> normal(dslash_, sums_, parity, masses[i]);
        std::vector<double> unused(num_rhs_);
        normal.residual(part(source_, parity), part(x[i], parity), part(residual, parity), unused);
      }
      append(x[i], residual);
    }
  }

  StaggeredSolve result() {
    SolverReport& report = result_.report;
    report.method = "cg";
    report.converged = report.worst_residual() <= options_.tolerance;
    report.seconds = base::steady_seconds() - begin_;
    add_counts(whole_, dslash_, before_);
    report.communication_seconds += sums_.waited() - waited_before_;
    return std::move(result_);
  }

 private:
  // The vectors of one global parity in a field.
  Real* part(const Field<Real>& field, int parity) const {
    return field.data() + lattice_.begin(parity) * field.shape.element();
  }

  void put(const Field<Real>& from, int parity) {
    const std::int64_t count = lattice_.count(parity) * from.shape.element();
    std::copy_n(part(from, parity), count, dslash_.field.data() + lattice_.begin(parity) * from.shape.element());
  }

  template <class Any>
  void add_counts(const VectorSpace<Any>& space) {
    result_.report.flops += space.flops;
    result_.report.bytes += space.bytes;
  }

  template <class Low>
  [[nodiscard]] bool half_halo() const {
    return options_.half_halo && std::is_same_v<Low, float>;
  }

  // Adds the counts of a field and its operator since `before`.
  template <class Any, class LowLink, class Low>
  void add_counts(const VectorSpace<Any>& space, const DslashField<LowLink, Low>& dslash,
                  const DslashCounters& before) {
    add_counts(space);
    result_.report.flops += dslash.counters.flops - before.flops;
    result_.report.bytes += dslash.counters.bytes - before.bytes;
    result_.report.communication_seconds += dslash.counters.waited - before.waited;
  }

  // Iterates until |r|^2 is below the target, in mixed precision if the sloppy precision is lower.
  void solve_normal(NormalOperator<Link, Real>& normal, int parity, double mass, const Real* b, Real* x, Real* r,
                    const Stopping& stopping) {
    SolverReport& report = result_.report;
    if (options_.sloppy_precision >= options_.precision) {
      return refine(normal, b, x, r, stopping, {.margin = margin}, report,
                    [&](const Stopping& until) { return SolveCounts{conjugate_gradients(normal, x, r, until), 1}; });
    }
    with_precision(options_.sloppy_precision, [&]<class LowLink, class Low>() {
      DslashField<LowLink, Low>& dslash = solver_.dslash<LowLink, Low>(static_cast<int>(num_rhs_), half_halo<Low>());
      const DslashCounters before = dslash.counters;
      NormalOperator<LowLink, Low> low(dslash, sums_, parity, mass);
      const SolveCounts done =
          mixed_conjugate_gradients(normal, low, b, x, r, stopping, reduction_of(options_.sloppy_precision));
      report.iterations += done.iterations;
      report.reliable_updates += done.reliable_updates;
      add_counts(low.space(), dslash, before);
    });
  }

  std::vector<Field<Real>> solve_normal_systems(std::span<const double> masses) {
    std::vector<std::size_t> order(masses.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return masses[i]; });
    std::vector<Field<Real>> y;
    for (std::size_t i = 0; i < masses.size(); ++i) y.emplace_back(whole_.shape(), false);
    for (const int parity : {0, 1}) solve_parity(parity, masses, order, y);
    return y;
  }

  void solve_parity(int parity, std::span<const double> masses, const std::vector<std::size_t>& order,
                    std::vector<Field<Real>>& y) {
    NormalOperator<Link, Real> normal(dslash_, sums_, parity, masses[order[0]]);
    VectorSpace<Real>& space = normal.space();
    const Real* const b = part(source_, parity);
    std::vector<double> norm(1);
    space.norm(b, norm);
    if (norm[0] == 0) return;
    // Each parity may contribute half of the allowed |r|^2.
    Stopping stopping = stopping_rule(options_, result_.report.iterations, norms_, 0.5);
    const double target = stopping.target[0];
    const double reached = attainable_of(options_.precision);
    stopping.target.assign(masses.size(), std::max(reached * reached * norm[0], target));
    std::vector<double> shifts;
    for (const std::size_t i : order)
      shifts.push_back(4 * (masses[i] * masses[i] - masses[order[0]] * masses[order[0]]));
    ShiftVectors<Real> vectors(space, masses.size());
    space.copy(b, vectors.r.data());
    iterate_shifts(normal, masses[order[0]], shifts, vectors, stopping);
    const Buffer<Real> r = space.make();
    for (std::size_t s = 0; s < order.size(); ++s) {
      Real* const found = part(y[order[s]], parity);
      space.copy(vectors.x[s].data(), found);
      normal.set_mass(masses[order[s]]);
      normal.residual(b, found, r.data(), norm);
      if (norm[0] * margin <= target) continue;
      stopping.target.assign(1, target);
      stopping.iterations = options_.iterations - result_.report.iterations;
      solve_normal(normal, parity, masses[order[s]], b, found, r.data(), stopping);
    }
    add_counts(space);
  }

  // Multi-shift CG that begins in the precision of the solution and continues in lower ones, each from where its errors
  // no longer count.
  void iterate_shifts(NormalOperator<Link, Real>& normal, double mass, std::span<const double> shifts,
                      ShiftVectors<Real>& vectors, const Stopping& stopping) {
    ShiftState state;
    const auto leave_for = [&](Precision next) {
      if (next < options_.sloppy_precision) return 0.0;
      const double error = attainable_of(options_.half_halo ? Precision::half : next);
      return stopping.target[0] / (error * error);
    };
    const auto below = [](Precision precision) {
      return precision == Precision::double_ ? Precision::single : Precision::half;
    };
    VectorSpace<Real>& space = normal.space();
    const bool mixed = options_.sloppy_precision < options_.precision;
    multi_shift(normal, shifts, vectors, state, stopping, mixed ? leave_for(below(options_.precision)) : 0.0);
    if (mixed && state.running > 0) {
      VectorSpace<float> low_space(solver_.pool(), sums_, space.shape());
      ShiftVectors<float> low(low_space, shifts.size());
      low.take(solver_.pool(), vectors);
      for (Precision now = below(options_.precision); now >= options_.sloppy_precision; now = below(now)) {
        const auto run = [&]<class LowLink>() {
          DslashField<LowLink, float>& dslash = solver_.dslash<LowLink, float>(1, options_.half_halo);
          const DslashCounters before = dslash.counters;
          NormalOperator<LowLink, float> op(dslash, sums_, normal.parity(), mass);
          multi_shift(op, shifts, low, state, stopping, now == Precision::half ? 0.0 : leave_for(Precision::half));
          add_counts(op.space(), dslash, before);
        };
        if (now == Precision::half) {
          run.template operator()<std::int16_t>();
          break;
        }
        run.template operator()<float>();
      }
      const Buffer<Real> work = space.make();
      for (std::size_t s = 0; s < shifts.size(); ++s) {
        convert(solver_.pool(), low.x[s].data(), work.data(), space.size());
        space.add(vectors.x[s].data(), std::vector<double>(1, 1.0), work.data(), vectors.x[s].data());
      }
    }
    result_.report.iterations += state.iterations;
  }

  // Computes |b - M x| / |b| and appends the solution and its residual to the result.
  void accept(const Field<Real>& x, double mass) {
    put(x, 0);
    put(x, 1);
    const Field<Real> residual(whole_.shape(), false);
    for (const int parity : {0, 1}) {
      dslash_.apply(parity, {.out = part(residual, parity),
                             .begin = lattice_.begin(parity),
                             .dslash_factor = -1,
                             .own = part(source_, parity),
                             .own_factor = 1});
    }
    whole_.add(residual.data(), std::vector(num_rhs_, -2 * mass), x.data(), residual.data());
    append(x, residual);
  }

  void append(const Field<Real>& x, const Field<Real>& residual_of) {
    std::vector<double> left(num_rhs_);
    whole_.norm(residual_of.data(), left);
    const std::size_t length = lattice_.sites.size() * 3;
    for (std::size_t rhs = 0; rhs < num_rhs_; ++rhs) {
      const double residual = norms_[rhs] > 0 ? std::sqrt(left[rhs] / norms_[rhs]) : 0;
      result_.solutions.resize(result_.solutions.size() + length);
      // A solution that is worse than 0 or not finite becomes 0.
      const bool better = residual <= 1;
      result_.report.residuals.push_back(better ? residual : 1);
      if (better)
        store_lexicographic(x, lattice_.sites, std::span(result_.solutions).last(length), static_cast<int>(rhs));
    }
  }

  StaggeredSolver& solver_;
  const SolverOptions& options_;
  const DslashLattice& lattice_;
  std::size_t num_rhs_;
  DslashField<Link, Real>& dslash_;
  Sums& sums_;
  VectorSpace<Real> whole_;
  Field<Real> source_;
  std::vector<double> norms_;  // |b|^2
  double begin_;
  DslashCounters before_;
  double waited_before_;
  StaggeredSolve result_;
};

}  // namespace

template <class Link>
const DslashLinks<Link>& StaggeredSolver::links() {
  const bool in_order = better_in_order(lattice_, sizeof(Link));
  auto& made = std::get<std::optional<DslashLinks<Link>>>(links_);
  if constexpr (std::is_same_v<Link, double>) {
    if (!in_order) return lattice_.links;
    if (!made) made = in_order_of_use(lattice_, lattice_.links);
  } else if (!made) {
    if constexpr (std::is_same_v<Link, float>) {
      made = to_single(lattice_.links);
    } else {
      made = to_half(lattice_.links, lattice_.group, lattice_.geometry.dims());
    }
    if (in_order) made = in_order_of_use(lattice_, *made);
  }
  return *made;
}

// The links in this precision, if they are still to be made, the field, and the vectors of a solve: about 20 of even
// sites, and sources and solutions in lexicographic order.
template <class Link, class Real>
void StaggeredSolver::require_memory(int num_rhs) const {
  constexpr Precision precision = std::is_same_v<Link, double>  ? Precision::double_
                                  : std::is_same_v<Link, float> ? Precision::single
                                                                : Precision::half;
  const Geometry& geometry = lattice_.geometry;
  const bool made = std::get<std::optional<DslashLinks<Link>>>(links_).has_value();
  const double places = static_cast<double>(geometry.vectors() + geometry.ghosts()) * geometry.spec().lanes;
  const double of_vectors = 6.0 * num_rhs * (12 * sizeof(Real) + 2 * sizeof(double));
  require_memory_for(lattice_.group, geometry.spec().extents,
                     (made ? 0 : static_cast<double>(link_bytes(precision))) + places * of_vectors,
                     "a solve of staggered quarks");
}

template <class Link, class Real>
DslashField<Link, Real>& StaggeredSolver::dslash(int num_rhs, bool half_halo) {
  using Fields = std::map<std::pair<int, bool>, std::unique_ptr<DslashField<Link, Real>>>;
  auto& made = std::get<Fields>(fields_)[{num_rhs, half_halo}];
  if (!made) {
    require_memory<Link, Real>(num_rhs);
    const DslashFieldOptions options{.num_rhs = num_rhs,
                                     .codec = half_halo ? Codec::bf16 : Codec::raw,
                                     .plain = parts_.plain,
                                     .exchange = parts_.exchange};
    made = std::make_unique<DslashField<Link, Real>>(lattice_, links<Link>(), pool_, options);
  }
  return *made;
}

template DslashField<double, double>& StaggeredSolver::dslash(int, bool);
template DslashField<float, float>& StaggeredSolver::dslash(int, bool);
template DslashField<std::int16_t, float>& StaggeredSolver::dslash(int, bool);

Sums& StaggeredSolver::sums(int num_rhs, bool wide) {
  auto& made = sums_[{num_rhs, wide}];
  if (!made) made = std::make_unique<Sums>(lattice_.group, 2 * num_rhs, wide, parts_.sum);
  return *made;
}

std::int64_t StaggeredSolver::link_bytes(Precision precision) const {
  return with_precision(precision, [&]<class Link, class Real>() {
    const auto once = lattice_.geometry.sites() * lattice_.kinds() * 18 * static_cast<std::int64_t>(sizeof(Link));
    return better_in_order(lattice_, sizeof(Link)) ? 2 * once : once;
  });
}

StaggeredSolve StaggeredSolver::solve(std::span<const Number> sources, double mass, const SolverOptions& options) {
  const auto num_rhs = static_cast<int>(sources.size() / (lattice_.sites.size() * 3));
  return with_precision(options.precision, [&]<class Link, class Real>() {
    Run<Link, Real> run(*this, num_rhs, options);
    run.load(sources);
    run.solve(mass);
    return run.result();
  });
}

StaggeredSolve StaggeredSolver::solve_masses(std::span<const Number> source, std::span<const double> masses,
                                             const SolverOptions& options, bool squares) {
  return with_precision(options.precision, [&]<class Link, class Real>() {
    Run<Link, Real> run(*this, 1, options);
    run.load(source);
    squares ? run.solve_squares(masses) : run.solve_masses(masses);
    return run.result();
  });
}

std::vector<Number> StaggeredSolver::filter(std::span<const Number> field, int degree, double low, double high) {
  DslashField<double, double>& dslash = this->dslash<double, double>(1);
  NormalOperator<double, double> normal(dslash, sums(1, false), 0, 0.0);
  VectorSpace<double>& space = normal.space();
  const std::int64_t begin = lattice_.begin(0) * dslash.field.shape.element();
  load_lexicographic(field, lattice_.sites, dslash.field);
  // t[n + 1] = 2 y t[n] - t[n - 1], where y = (2 A - high - low) / (high - low) maps [low, high] to [-1, 1].
  const double scale = 2 / (high - low);
  const double middle = (high + low) / (high - low);
  Buffer<double> now = space.make(), before = space.make(), next = space.make();
  space.copy(normal.input(), now.data());
  for (int n = 0; n < degree; ++n) {
    const double twice = n == 0 ? 1 : 2;
    normal.apply(now.data(), next.data());
    const std::array<Coefficient, 3> factors{twice * scale, -twice * middle, n == 0 ? 0.0 : -1.0};
    space.combine(factors, std::array<const double*, 3>{next.data(), now.data(), before.data()}, next.data());
    std::swap(before, now);
    std::swap(now, next);
  }
  const Field<double> out({lattice_.geometry.vectors(), 0, 1, 3, space.shape().lanes}, false);
  space.copy(now.data(), out.data() + begin);
  std::vector<Number> result(field.size());
  store_lexicographic(out, lattice_.sites, std::span(result));
  return result;
}

}  // namespace onehop::lattice::detail
