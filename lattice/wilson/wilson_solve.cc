// Solving M x = b: on even sites M^ x_e = b_e + kappa D A^-1 b_o with the preconditioned operator M^, then x_o = A^-1 (b_o + kappa D x_e).
#include <algorithm>
#include <chrono>
#include <cmath>

#include "lattice/solver/krylov.h"
#include "lattice/wilson/wilson_impl.h"

namespace onehop::lattice {

namespace {

using detail::Buffer;
using detail::Coefficient;
using detail::LinearOperator;
using detail::Stopping;
using detail::VectorSpace;
using detail::WilsonCore;
using Number = std::complex<double>;

// How far the residual falls in a lower precision before it is made anew.
double gain_of(Precision inner) { return inner == Precision::half ? 3e-2 : 1e-4; }
constexpr int most_attempts = 8;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class T>
detail::FieldShape shape_of(const WilsonCore<T>& core, int colour) {
  return {core.storage().vectors(colour), 0, core.copies(), 12, core.storage().lanes()};
}

// The preconditioned operator on even sites, and the product of its adjoint and itself.
template <class T>
class Preconditioned : public LinearOperator<T> {
 public:
  Preconditioned(const Wilson::Impl& impl, WilsonCore<T>& core, VectorSpace<T>& space)
      : impl_(impl), core_(core), space_(space), input_(space.make()), middle_(core.size(1)) {}
  VectorSpace<T>& space() override { return space_; }
  T* input() override { return input_.data(); }
  void apply(const T* in, T* out) override { impl_.precondition(core_, in, middle_.data(), out, false); }
  void apply_adjoint(const T* in, T* out) { impl_.precondition(core_, in, middle_.data(), out, true); }

 private:
  const Wilson::Impl& impl_;
  WilsonCore<T>& core_;
  VectorSpace<T>& space_;
  Buffer<T> input_;
  Buffer<T> middle_;
};

template <class T>
class Normal : public LinearOperator<T> {
 public:
  explicit Normal(Preconditioned<T>& of) : of_(of), between_(of.space().make()) {}
  VectorSpace<T>& space() override { return of_.space(); }
  T* input() override { return of_.input(); }
  void apply(const T* in, T* out) override {
    of_.apply(in, between_.data());
    of_.apply_adjoint(between_.data(), out);
  }
  void apply_and_project(const T* in, T* out, std::span<double> products) override {
    of_.apply(in, between_.data());
    space().norm(between_.data(), products);
    of_.apply_adjoint(between_.data(), out);
  }

 private:
  Preconditioned<T>& of_;
  Buffer<T> between_;
};

// M^ K, where K does a few steps of Jacobi's iteration with M^ of the own block alone, y = A^-1 (x + kappa^2 D A^-1 D y): the additive
// Schwarz method with the ranks' blocks as domains. K is linear, and needs neither faces nor sums.
template <class T>
class Schwarz : public LinearOperator<T> {
 public:
  Schwarz(const Wilson::Impl& impl, WilsonCore<T>& core, Preconditioned<T>& of, int steps)
      : impl_(impl),
        core_(core),
        of_(of),
        steps_(steps),
        input_(of.space().make()),
        improved_(of.space().make()),
        middle_(core.size(1)) {}
  VectorSpace<T>& space() override { return of_.space(); }
  T* input() override { return input_.data(); }
  void apply(const T* in, T* out) override {
    improve(in, improved_.data());
    of_.apply(improved_.data(), out);
  }
  // out = K in
  void improve(const T* in, T* out) {
    const bool clover = core_.storage().has_clover();
    const double square = impl_.options.kappa * impl_.options.kappa;
    core_.domain = true;
    core_.blocks(0, in, out, true);
    for (int step = 0; step < steps_; ++step) {
      core_.hop(1, out, middle_.data(), {.form = clover ? WilsonForm::clover : WilsonForm::plain, .inverse = true});
      core_.hop(0, middle_.data(), out, {.form = WilsonForm::add, .factor = square, .other = in});
      core_.blocks(0, out, out, true);
    }
    core_.domain = false;
  }

 private:
  const Wilson::Impl& impl_;
  WilsonCore<T>& core_;
  Preconditioned<T>& of_;
  int steps_;
  Buffer<T> input_;
  Buffer<T> improved_;
  Buffer<T> middle_;
};

// BiCGStab, with or without that. x must be 0 at the beginning.
template <class T>
std::int64_t iterate(Preconditioned<T>& of, Schwarz<T>* schwarz, T* x, T* r, const Stopping& stopping,
                     std::int64_t done = 0) {
  if (schwarz == nullptr) return detail::bicgstab(of, x, r, stopping, done);
  const Buffer<T> y = of.space().make();
  const std::int64_t iterations = detail::bicgstab(*schwarz, y.data(), r, stopping, done);
  schwarz->improve(y.data(), x);
  return iterations;
}

struct Found {
  std::int64_t iterations = 0;
  std::int64_t corrections = 0;
};

// x += what reduces r = b - M^ x to `stopping`, with inner iterations in `Low`, or none where low is null.
template <class T, class Low>
Found improve(Preconditioned<T>& high, Preconditioned<Low>* low, Schwarz<T>* schwarz, Schwarz<Low>* low_schwarz,
              const T* b, T* x, T* r, const Stopping& stopping, double gain) {
  VectorSpace<T>& space = high.space();
  if (low == nullptr) {
    const Buffer<T> step = space.make();
    const std::int64_t iterations = iterate(high, schwarz, step.data(), r, stopping);
    const std::vector<Coefficient> ones(2 * static_cast<std::size_t>(space.copies()), 1.0);
    const std::array<const T*, 2> terms{x, step.data()};
    space.combine(ones, terms, x);
    return {iterations, 0};
  }
  const auto inner = [&](Low* low_r, Low* low_x, const Stopping& until, std::int64_t done) {
    return iterate(*low, low_schwarz, low_x, low_r, until, done);
  };
  const auto found = detail::corrected(high, low->space(), b, x, r, stopping, gain, inner);
  return {found.iterations, found.corrections};
}

template <class T, class Low>
Found improve_normal(Preconditioned<T>& high, Preconditioned<Low>* low, T* x, const T* r, Stopping stopping,
                     double shrink, double gain) {
  VectorSpace<T>& space = high.space();
  const auto copies = static_cast<std::size_t>(space.copies());
  const Buffer<T> source = space.make();
  const Buffer<T> rest = space.make();
  const Buffer<T> step = space.make();
  std::vector<double> before(copies);
  std::vector<double> after(copies);
  high.apply_adjoint(r, source.data());
  space.norm(r, before);
  space.norm(source.data(), after);
  // Of the normal equations' residual nobody knows what it is worth; it is taken to shrink as the other does.
  for (std::size_t i = 0; i < copies; ++i) stopping.enough[i] *= shrink * (before[i] > 0 ? after[i] / before[i] : 1);
  space.copy(source.data(), rest.data());
  Normal<T> normal(high);
  Found found;
  if (low == nullptr) {
    found.iterations = detail::conjugate_gradients(normal, step.data(), rest.data(), stopping);
  } else {
    Normal<Low> low_normal(*low);
    const auto mixed = detail::mixed_conjugate_gradients(normal, low_normal, static_cast<const T*>(source.data()),
                                                         step.data(), rest.data(), stopping, gain);
    found = {mixed.iterations, mixed.corrections};
  }
  const std::vector<Coefficient> ones(2 * copies, 1.0);
  const std::array<const T*, 2> terms{x, step.data()};
  space.combine(ones, terms, x);
  return found;
}

// to = a - b
template <class T>
void subtract(VectorSpace<T>& space, const T* a, const T* b, T* to) {
  const auto copies = static_cast<std::size_t>(space.copies());
  std::vector<Coefficient> coefficients(2 * copies, 1.0);
  std::fill(coefficients.begin() + static_cast<std::ptrdiff_t>(copies), coefficients.end(), -1.0);
  const std::array<const T*, 2> terms{a, b};
  space.combine(coefficients, terms, to);
}

template <class T>
class Solver {
 public:
  Solver(Wilson::Impl& impl, std::span<const Number> sources, const SolverOptions& options, const WilsonSolver& solver)
      : impl_(impl),
        options_(options),
        solver_(solver),
        copies_(static_cast<std::size_t>(impl.copies_of(sources))),
        mixed_(options.inner != options.precision),
        lanes_(mixed_ ? impl.lanes<double>() : impl.lanes<T>()),
        core_(impl.core<T>(lanes_, static_cast<int>(copies_), false)),
        sums_(impl.group, 2 * static_cast<int>(copies_), options.reproducible),
        spaces_{VectorSpace<T>(impl.team, sums_, shape_of(core_, 0)),
                VectorSpace<T>(impl.team, sums_, shape_of(core_, 1))},
        high_(impl, core_, spaces_[0]) {
    for (const int colour : {0, 1}) {
      b_[colour] = Buffer<T>(core_.size(colour));
      x_[colour] = Buffer<T>(core_.size(colour));
      work_[colour] = Buffer<T>(core_.size(colour));
      impl.load(core_, sources, colour, b_[colour].data());
    }
  }

  WilsonSolve run() {
    const double begin = now();
    const double waited = core_.waited;
    core_.flops = core_.bytes = 0;
    squares_ = squares(b_);
    detail::check_sources(squares_);
    WilsonSolve result;
    if (mixed_) {
      solve_even<float>(result.report);
    } else {
      solve_even<T>(result.report);
    }
    const double kappa = impl_.options.kappa;
    core_.hop(1, x_[0].data(), work_[1].data(), {.form = WilsonForm::add, .factor = kappa, .other = b_[1].data()});
    core_.blocks(1, work_[1].data(), x_[1].data(), true);
    check(result.report);
    result.solution.resize(copies_ * core_.storage().sites.size() * 12);
    for (const int colour : {0, 1}) impl_.unload(core_, x_[colour].data(), colour, std::span(result.solution));
    drop_what_is_worse_than_none(result);
    result.report.seconds = now() - begin;
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
    std::vector<double> even(copies_);
    std::vector<double> odd(copies_);
    spaces_[0].norm(field[0].data(), even);
    spaces_[1].norm(field[1].data(), odd);
    for (std::size_t i = 0; i < copies_; ++i) even[i] += odd[i];
    return even;
  }

  // Low is that of the inner iterations where there are such, otherwise T.
  template <class Low>
  void solve_even(SolverReport& report) {
    const Buffer<T> source = spaces_[0].make();
    const Buffer<T> rest = spaces_[0].make();
    core_.blocks(1, b_[1].data(), work_[1].data(), true);
    core_.hop(0, work_[1].data(), source.data(),
              {.form = WilsonForm::add, .factor = impl_.options.kappa, .other = b_[0].data()});
    Stopping stopping;
    stopping.iterations = options_.iterations;
    stopping.progress = &options_.progress;
    stopping.scale = squares_;
    // A bit less than asked for, as what is carried along differs from the residual by rounding.
    for (const double square : squares_)
      stopping.enough.push_back(0.81 * options_.tolerance * options_.tolerance * square);
    std::unique_ptr<VectorSpace<Low>> low_space;
    std::unique_ptr<Preconditioned<Low>> low;
    WilsonCore<Low>* low_core = nullptr;
    if (mixed_) {
      low_core =
          &impl_.core<Low>(lanes_, static_cast<int>(copies_), options_.inner == Precision::half, options_.half_faces);
      low_core->flops = low_core->bytes = low_core->waited = 0;
      low_space = std::make_unique<VectorSpace<Low>>(impl_.team, sums_, shape_of(*low_core, 0));
      low = std::make_unique<Preconditioned<Low>>(impl_, *low_core, *low_space);
    }
    std::unique_ptr<Schwarz<T>> schwarz;
    std::unique_ptr<Schwarz<Low>> low_schwarz;
    if (solver_.schwarz > 0 && low) {
      low_schwarz = std::make_unique<Schwarz<Low>>(impl_, *low_core, *low, solver_.schwarz);
    } else if (solver_.schwarz > 0) {
      schwarz = std::make_unique<Schwarz<T>>(impl_, core_, high_, solver_.schwarz);
    }
    const double gain = gain_of(options_.inner);
    double shrink = 1;
    double last = HUGE_VAL;
    const Buffer<T> best = spaces_[0].make();
    for (int attempt = 0;; ++attempt) {
      high_.apply(x_[0].data(), rest.data());
      subtract(spaces_[0], source.data(), rest.data(), rest.data());
      std::vector<double> norms(copies_);
      spaces_[0].norm(rest.data(), norms);
      double total = 0;
      for (const double norm : norms) total += norm;
      if (!(total < last)) {
        if (attempt > 0) spaces_[0].copy(best.data(), x_[0].data());
        break;
      }
      if (detail::all_below(norms, stopping.enough) || report.iterations >= options_.iterations ||
          attempt == most_attempts)
        break;
      last = total;
      spaces_[0].copy(x_[0].data(), best.data());
      stopping.iterations = options_.iterations - report.iterations;
      const Found found = solver_.method == WilsonMethod::bicgstab
                              ? improve(high_, low.get(), schwarz.get(), low_schwarz.get(),
                                        static_cast<const T*>(source.data()), x_[0].data(), rest.data(), stopping, gain)
                              : improve_normal(high_, low.get(), x_[0].data(), rest.data(), stopping, shrink, gain);
      shrink *= 0.1;
      report.iterations += found.iterations;
      report.corrections += found.corrections;
    }
    if (!mixed_) return;
    report.flops += low_core->flops + low_space->flops;
    report.bytes += low_core->bytes + low_space->bytes;
    report.communication_seconds += low_core->waited;
  }

  // The residual of the whole operator.
  void check(SolverReport& report) {
    const WilsonForm form = core_.storage().has_clover() ? WilsonForm::clover_other : WilsonForm::add;
    for (const int colour : {0, 1}) {
      core_.hop(colour, x_[1 - colour].data(), work_[colour].data(),
                {.form = form, .factor = -impl_.options.kappa, .other = x_[colour].data()});
      subtract(spaces_[static_cast<std::size_t>(colour)], b_[colour].data(), work_[colour].data(),
               work_[colour].data());
    }
    report.residuals = squares(work_);
    report.converged = true;
    for (std::size_t i = 0; i < copies_; ++i) {
      report.residuals[i] = squares_[i] > 0 ? std::sqrt(report.residuals[i] / squares_[i]) : 0;
      report.converged = report.converged && report.residuals[i] <= options_.tolerance;
    }
  }

  // An answer with a larger residual than 0 has, or that is no number at all, becomes 0.
  void drop_what_is_worse_than_none(WilsonSolve& result) const {
    const std::size_t length = result.solution.size() / copies_;
    for (std::size_t i = 0; i < copies_; ++i) {
      if (result.report.residuals[i] <= 1) continue;
      result.report.residuals[i] = 1;
      std::fill_n(result.solution.begin() + static_cast<std::ptrdiff_t>(i * length), length, Number{});
    }
  }

  Wilson::Impl& impl_;
  const SolverOptions& options_;
  WilsonSolver solver_;
  std::size_t copies_;
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
    if (options.inner == Precision::full) all_single.inner = Precision::single;
    return Solver<float>(*this, sources, all_single, solver).run();
  }
  return Solver<double>(*this, sources, options, solver).run();
}

}  // namespace onehop::lattice
