// Solves M x = b: M^ x_e = b_e + kappa D A^-1 b_o on even sites, with the even-odd preconditioned operator M^ = A -
// kappa^2 D A^-1 D, then x_o = A^-1 (b_o + kappa D x_e).
#include <algorithm>
#include <cmath>
#include <utility>

#include "lattice/solver/bicgstab.h"
#include "lattice/solver/refinement.h"
#include "lattice/wilson/wilson_operators.h"
#include "src/base/clock.h"

namespace onehop::lattice {

namespace {

using detail::Buffer;
using detail::Normal;
using detail::Preconditioned;
using detail::Schwarz;
using detail::SolveCounts;
using detail::Stopping;
using detail::VectorSpace;
using detail::WilsonCore;
using Number = std::complex<double>;

// The factor by which |r| falls in the sloppy precision before it is recomputed.
double reduction_of(Precision sloppy) { return sloppy == Precision::half ? 3e-2 : 1e-4; }
// BiCGStab's residual drifts further than that of conjugate gradients, and the targets of CGNR are guesses.
constexpr int max_attempts = 8;

template <class T>
detail::FieldShape shape_of(const WilsonCore<T>& core, int parity) {
  return {core.storage().vectors(parity), 0, core.num_rhs(), 12, core.storage().lanes()};
}

// BiCGStab, preconditioned if `schwarz` is not null. x must be 0 on entry.
template <class T>
std::int64_t iterate(Preconditioned<T>& op, Schwarz<T>* schwarz, T* x, T* r, const Stopping& stopping,
                     std::int64_t done = 0) {
  if (schwarz == nullptr) return detail::bicgstab(op, x, r, stopping, done);
  const Buffer<T> y = op.space().make();
  const std::int64_t iterations = detail::bicgstab(*schwarz, y.data(), r, stopping, done);
  schwarz->refine(y.data(), x);
  return iterations;
}

template <class T>
class Solver {
 public:
  Solver(Wilson::Impl& impl, std::span<const Number> sources, const SolverOptions& options, const WilsonSolver& solver)
      : impl_(impl),
        options_(options),
        solver_(solver),
        num_rhs_(static_cast<std::size_t>(impl.num_rhs_of(sources))),
        mixed_(options.sloppy_precision != options.precision),
        lanes_(mixed_ ? impl.lanes<double>() : impl.lanes<T>()),
        core_(impl.core<T>(lanes_, static_cast<int>(num_rhs_), false)),
        sums_(impl.group, 2 * static_cast<int>(num_rhs_), options.reproducible),
        spaces_{VectorSpace<T>(impl.pool, sums_, shape_of(core_, 0)),
                VectorSpace<T>(impl.pool, sums_, shape_of(core_, 1))},
        high_(impl, core_, spaces_[0]) {
    for (const int parity : {0, 1}) {
      b_[parity] = Buffer<T>(core_.size(parity));
      x_[parity] = Buffer<T>(core_.size(parity));
      work_[parity] = Buffer<T>(core_.size(parity));
      impl.load(core_, sources, parity, b_[parity].data());
    }
  }

  WilsonSolve run() {
    const double begin = base::steady_seconds();
    const double waited = core_.waited;
    core_.flops = core_.bytes = 0;
    squares_ = squares(b_);
    detail::check_sources(squares_);
    WilsonSolve result;
    mixed_ ? solve_even<float>(result.report) : solve_even<T>(result.report);
    const double kappa = impl_.options.kappa;
    core_.dslash(1, x_[0].data(), work_[1].data(), {.form = WilsonForm::add, .factor = kappa, .other = b_[1].data()});
    core_.blocks(1, work_[1].data(), x_[1].data(), true);
    check(result.report);
    result.solution.resize(num_rhs_ * core_.storage().sites.size() * 12);
    for (const int parity : {0, 1}) impl_.unload(core_, x_[parity].data(), parity, std::span(result.solution));
    zero_useless_solutions(result);
    result.report.seconds = base::steady_seconds() - begin;
    result.report.communication_seconds += core_.waited - waited + sums_.waited();
    for (const auto& space : spaces_) {
      result.report.flops += space.flops;
      result.report.bytes += space.bytes;
    }
    result.report.flops += core_.flops;
    result.report.bytes += core_.bytes;
    return result;
  }

 private:
  std::vector<double> squares(const Buffer<T> (&field)[2]) {
    std::vector<double> even(num_rhs_);
    std::vector<double> odd(num_rhs_);
    spaces_[0].norm(field[0].data(), even);
    spaces_[1].norm(field[1].data(), odd);
    for (std::size_t i = 0; i < num_rhs_; ++i) even[i] += odd[i];
    return even;
  }

  // The operator in the sloppy precision; empty without one.
  template <class Low>
  struct Sloppy {
    WilsonCore<Low>* core = nullptr;
    std::unique_ptr<VectorSpace<Low>> space;
    std::unique_ptr<Preconditioned<Low>> matrix;
    std::unique_ptr<Schwarz<Low>> schwarz;

    void add_to(SolverReport& report) const {
      if (core == nullptr) return;
      report.flops += core->flops + space->flops;
      report.bytes += core->bytes + space->bytes;
      report.communication_seconds += core->waited;
    }
  };

  template <class Low>
  [[nodiscard]] Sloppy<Low> make_sloppy() {
    Sloppy<Low> low;
    if (!mixed_) return low;
    low.core = &impl_.core<Low>(lanes_, static_cast<int>(num_rhs_), options_.sloppy_precision == Precision::half,
                                options_.half_halo);
    low.core->flops = low.core->bytes = low.core->waited = 0;
    low.space = std::make_unique<VectorSpace<Low>>(impl_.pool, sums_, shape_of(*low.core, 0));
    low.matrix = std::make_unique<Preconditioned<Low>>(impl_, *low.core, *low.space);
    if (solver_.schwarz > 0)
      low.schwarz = std::make_unique<Schwarz<Low>>(impl_, *low.core, *low.matrix, solver_.schwarz);
    return low;
  }

  // Reduces r = b - M^ x to `stopping` by adding a correction to the even part of x, with BiCGStab.
  template <class Low>
  SolveCounts attempt(const Sloppy<Low>& low, Schwarz<T>* schwarz, const T* b, T* r, const Stopping& stopping) {
    if (low.matrix) {
      return detail::corrected(high_, *low.space, b, x_[0].data(), r, stopping, reduction_of(options_.sloppy_precision),
                               [&](Low* low_r, Low* low_x, const Stopping& until, std::int64_t done) {
                                 return iterate(*low.matrix, low.schwarz.get(), low_x, low_r, until, done);
                               });
    }
    const Buffer<T> step = spaces_[0].make();
    const std::int64_t iterations = iterate(high_, schwarz, step.data(), r, stopping);
    spaces_[0].add(x_[0].data(), std::vector(num_rhs_, 1.0), step.data(), x_[0].data());
    return {iterations, 0};
  }

  // The same by CGNR. How |M^dagger r| relates to |r| at convergence is unknown: it takes the ratio of the start, times
  // `shrink`.
  template <class Low>
  SolveCounts attempt_cgnr(const Sloppy<Low>& low, const T* r, Stopping stopping, double shrink) {
    VectorSpace<T>& space = spaces_[0];
    const Buffer<T> source = space.make(), residual = space.make(), step = space.make();
    std::vector<double> before(num_rhs_), after(num_rhs_);
    high_.apply_adjoint(r, source.data());
    space.norm(r, before);
    space.norm(source.data(), after);
    for (std::size_t i = 0; i < num_rhs_; ++i)
      stopping.target[i] *= shrink * (before[i] > 0 ? after[i] / before[i] : 1);
    space.copy(source.data(), residual.data());
    Normal<T> normal(high_);
    SolveCounts done;
    if (low.matrix) {
      Normal<Low> low_normal(*low.matrix);
      done = detail::mixed_conjugate_gradients<T, Low>(normal, low_normal, source.data(), step.data(), residual.data(),
                                                       stopping, reduction_of(options_.sloppy_precision));
    } else {
      done.iterations = detail::conjugate_gradients(normal, step.data(), residual.data(), stopping);
    }
    space.add(x_[0].data(), std::vector(num_rhs_, 1.0), step.data(), x_[0].data());
    return done;
  }

  // Low is the sloppy precision, or T without one.
  template <class Low>
  void solve_even(SolverReport& report) {
    const Buffer<T> source = spaces_[0].make();
    const Buffer<T> residual = spaces_[0].make();
    core_.blocks(1, b_[1].data(), work_[1].data(), true);
    core_.dslash(0, work_[1].data(), source.data(),
                 {.form = WilsonForm::add, .factor = impl_.options.kappa, .other = b_[0].data()});
    Stopping stopping = detail::stopping_rule(options_, 0, squares_);
    const Sloppy<Low> low = make_sloppy<Low>();
    std::unique_ptr<Schwarz<T>> schwarz;
    if (solver_.schwarz > 0 && !mixed_) schwarz = std::make_unique<Schwarz<T>>(impl_, core_, high_, solver_.schwarz);
    std::vector<double> norms(num_rhs_);
    const T* const b = source.data();
    high_.residual(b, x_[0].data(), residual.data(), norms);
    // Solves with attempts of one method, as far as the residual is not low enough yet.
    const auto solve = [&](const char* name, Stopping until, auto&& attempted) {
      until.iterations -= report.iterations;
      if (!std::isfinite(detail::total(norms)) || detail::all_below(norms, until.target) || until.iterations <= 0)
        return;
      report.method = name;
      detail::refine(high_, b, x_[0].data(), residual.data(), until,
                     {.attempts = max_attempts, .total = detail::total(norms)}, report, attempted);
      high_.residual(b, x_[0].data(), residual.data(), norms);
    };
    detail::StallRule stall;
    if (solver_.method == WilsonMethod::automatic) stopping.stall = &stall;
    report.method = solver_.method == WilsonMethod::cgnr ? "cgnr" : "bicgstab";
    if (solver_.method != WilsonMethod::cgnr)
      solve("bicgstab", stopping,
            [&](const Stopping& until) { return attempt(low, schwarz.get(), b, residual.data(), until); });
    stopping.stall = nullptr;
    double shrink = 1;
    if (solver_.method != WilsonMethod::bicgstab)
      solve("cgnr", stopping, [&](const Stopping& until) {
        return attempt_cgnr(low, residual.data(), until, std::exchange(shrink, 0.1 * shrink));
      });
    low.add_to(report);
  }

  // Recomputes the residuals with the whole operator M.
  void check(SolverReport& report) {
    const WilsonForm form = core_.storage().has_clover() ? WilsonForm::clover_other : WilsonForm::add;
    for (const int parity : {0, 1}) {
      core_.dslash(parity, x_[1 - parity].data(), work_[parity].data(),
                   {.form = form, .factor = -impl_.options.kappa, .other = x_[parity].data()});
      spaces_[static_cast<std::size_t>(parity)].subtract(b_[parity].data(), work_[parity].data(), work_[parity].data());
    }
    report.residuals = squares(work_);
    report.converged = true;
    for (std::size_t i = 0; i < num_rhs_; ++i) {
      report.residuals[i] = squares_[i] > 0 ? std::sqrt(report.residuals[i] / squares_[i]) : 0;
      report.converged = report.converged && report.residuals[i] <= options_.tolerance;
    }
  }

  // Replaces solutions that are worse than 0 or not finite by 0.
  void zero_useless_solutions(WilsonSolve& result) const {
    const std::size_t length = result.solution.size() / num_rhs_;
    for (std::size_t i = 0; i < num_rhs_; ++i) {
      if (result.report.residuals[i] <= 1) continue;
      result.report.residuals[i] = 1;
      std::fill_n(result.solution.begin() + static_cast<std::ptrdiff_t>(i * length), length, Number{});
    }
  }

  Wilson::Impl& impl_;
  const SolverOptions& options_;
  WilsonSolver solver_;
  std::size_t num_rhs_;
  bool mixed_;
  int lanes_;
  WilsonCore<T>& core_;
  detail::Sums sums_;
  std::array<VectorSpace<T>, 2> spaces_;
  Preconditioned<T> high_;
  Buffer<T> b_[2];
  Buffer<T> x_[2];
  Buffer<T> work_[2];
  std::vector<double> squares_;
};

}  // namespace

WilsonSolve Wilson::Impl::solve(std::span<const Number> sources, const SolverOptions& options,
                                const WilsonSolver& solver) {
  if (options.precision == Precision::single) {
    SolverOptions all_single = options;
    if (options.sloppy_precision == Precision::double_) all_single.sloppy_precision = Precision::single;
    return Solver<float>(*this, sources, all_single, solver).run();
  }
  return Solver<double>(*this, sources, options, solver).run();
}

}  // namespace onehop::lattice
