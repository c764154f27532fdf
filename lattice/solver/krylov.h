// Krylov solvers: what they share, and conjugate gradients, also in mixed precision with reliable updates and with
// several shifts at once. BiCGStab is in bicgstab.h. Solvers see an operator only as LinearOperator and do arithmetic
// only through VectorSpace. Each call solves `num_rhs` independent systems. The residual that a solver updates in each
// iteration drifts away from the true one by rounding: callers must recompute b - A x with the operator before they
// report convergence (docs/reference/lattice_solvers.md).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lattice/solver/vector_space.h"
#include "onehop/error.h"
#include "onehop/lattice/solver.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/base/trace.h"

namespace onehop::lattice::detail {

// The operator A of A x = b. Vectors are this rank's part, in the layout of VectorSpace. All calls are collective.
template <class Real>
class LinearOperator {
 public:
  virtual ~LinearOperator() = default;
  [[nodiscard]] virtual VectorSpace<Real>& space() = 0;
  // The operator's own input buffer, which has room for ghosts: apply(input(), ...) saves a copy. Solvers keep their
  // search direction here. A call of apply() with another vector overwrites it.
  [[nodiscard]] virtual Real* input() = 0;
  virtual void apply(const Real* in, Real* out) = 0;
  // Applies the operator and computes the real part of <in, A in> for each right-hand side.
  virtual void apply_and_project(const Real* in, Real* out, std::span<double> products) {
    apply(in, out);
    std::vector<Coefficient> dots(products.size());
    space().dot(in, out, dots);
    for (std::size_t i = 0; i < dots.size(); ++i) products[i] = dots[i].real();
  }
  // r = b - A x, and |r|^2 per right-hand side.
  void residual(const Real* b, const Real* x, Real* r, std::span<double> norms) {
    apply(x, r);
    space().subtract(b, r, r);
    space().norm(r, norms);
  }
};

// Tells when BiCGStab stalls, on whatever precision it iterates. Where the spectrum of the operator surrounds 0, the
// residual falls at once by a little, then hardly at all, while conjugate gradients on the normal equations converge.
class StallRule {
 public:
  // Notes |r|^2 per right-hand side before the first iteration; later calls do nothing.
  void begin(std::span<const double> norms) {
    if (!first_.empty()) return;
    first_.assign(norms.begin(), norms.end());
    least_ = first_;
  }
  // Notes |r|^2 after an iteration. Returns whether one of the right-hand sides stalls.
  bool stalls(std::span<const double> norms) {
    double worst = 0;
    for (std::size_t i = 0; i < norms.size(); ++i) {
      least_[i] = std::min(least_[i], norms[i]);
      if (first_[i] > 0) worst = std::max(worst, least_[i] / first_[i]);
    }
    const double late = static_cast<double>(std::max<std::int64_t>(++iterations_ - patience, 0));
    stalled_ = stalled_ || (iterations_ >= trial && std::sqrt(worst) > trial_residual * std::pow(10, -late / decade));
    return stalled_;
  }
  [[nodiscard]] bool stalled() const { return stalled_; }

 private:
  // Measured on random and thermalised fields of 4^4 to 8^4 sites: where BiCGStab needs fewer iterations in the end,
  // |r| has fallen to 0.048 or less after 10 of them, elsewhere to 0.055 at best. It may stay there until the 18th; a
  // solve that converges then gains a decade in 40 iterations or fewer.
  static constexpr std::int64_t trial = 10;
  static constexpr std::int64_t patience = 25;
  static constexpr double trial_residual = 0.05;
  static constexpr double decade = 60;
  std::vector<double> first_, least_;
  std::int64_t iterations_ = 0;
  bool stalled_ = false;
};

// When to stop, and whom to tell about the progress.
struct Stopping {
  std::vector<double> target;       // |r|^2 to reach, per right-hand side
  std::int64_t iterations = 10000;  // the largest number of iterations
  const SolverProgress* progress = nullptr;
  std::vector<double> scale;   // |b|^2 per right-hand side in the measure of `target`; the progress is |r| / |b|
  StallRule* stall = nullptr;  // if not null, BiCGStab stops where it stalls

  [[nodiscard]] bool stalled() const { return stall != nullptr && stall->stalled(); }
};

// Reports the progress at most four times per second.
class Progress {
 public:
  explicit Progress(const Stopping& stopping) : stopping_(stopping) {}
  void at(std::int64_t iteration, std::span<const double> norms) {
    if (trace::is_on()) [[unlikely]]
      trace_iteration(iteration);
    if (stopping_.progress == nullptr || !*stopping_.progress) return;
    const double now = base::steady_seconds();
    if (now - last_ < 0.25) return;
    last_ = now;
    double worst = 0;
    for (std::size_t i = 0; i < norms.size(); ++i) {
      const double scale = i < stopping_.scale.size() ? stopping_.scale[i] : 1;
      if (scale > 0) worst = std::max(worst, norms[i] / scale);
    }
    (*stopping_.progress)(iteration, std::sqrt(worst));
  }

 private:
  void trace_iteration(std::int64_t iteration) {
    const std::int64_t now = trace::now();
    trace::record({.begin = traced_,
                   .end = now,
                   .name = trace::name_of("iteration"),
                   .kind = trace::Kind::solver,
                   .count = static_cast<std::uint32_t>(iteration)});
    traced_ = now;
  }

  const Stopping& stopping_;
  double last_ = base::steady_seconds();
  std::int64_t traced_ = trace::now();  // the end of the last iteration
};

inline bool all_below(std::span<const double> norms, std::span<const double> target) {
  for (std::size_t i = 0; i < norms.size(); ++i) {
    if (!(norms[i] <= target[i])) return false;
  }
  return true;
}

// Throws BadInput unless every |b|^2 is finite. `squares` must be the same on all ranks, so that all of them throw.
inline void check_sources(std::span<const double> squares) {
  for (std::size_t i = 0; i < squares.size(); ++i) {
    if (!std::isfinite(squares[i]))
      throw BadInput("solver: expected right-hand sides of finite numbers and finite norm, found |b|^2 = " +
                     onehop::base::number_text(squares[i]) + " for right-hand side " + std::to_string(i));
  }
}

inline double total(std::span<const double> norms) {
  double sum = 0;
  for (const double norm : norms) sum += norm;
  return sum;
}

// above / below, or 0 if that is not finite. A coefficient of 0 leaves a right-hand side that has broken down as it is.
inline double quotient(double above, double below) {
  const double value = above / below;
  return std::isfinite(value) ? value : 0;
}

inline Coefficient quotient(Coefficient above, Coefficient below) {
  const Coefficient value = above / below;
  return std::isfinite(value.real()) && std::isfinite(value.imag()) ? value : Coefficient{};
}

// alpha = |r|^2 / <p, A p> for the systems that still run, 0 for the others. Returns whether any moves.
inline bool step_lengths(std::span<const double> norms, std::span<const double> products,
                         std::span<const double> target, std::span<double> alpha) {
  bool moves = false;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    alpha[i] = norms[i] <= target[i] ? 0 : quotient(norms[i], products[i]);
    moves = moves || alpha[i] != 0;
  }
  return moves;
}

// Conjugate gradients for a positive definite Hermitian A. On entry r = b - A x. Updates x and r until |r|^2 <= target.
// Returns the iterations.
template <class Real>
std::int64_t conjugate_gradients(LinearOperator<Real>& a, Real* x, Real* r, const Stopping& stopping) {
  VectorSpace<Real>& space = a.space();
  const auto num_rhs = static_cast<std::size_t>(space.num_rhs());
  const Buffer<Real> ap = space.make();
  Real* const p = a.input();
  std::vector<double> norms(num_rhs), next(num_rhs), products(num_rhs), alpha(num_rhs), beta(num_rhs);
  Progress progress(stopping);
  space.copy(r, p);
  space.norm(r, norms);
  std::int64_t iterations = 0;
  while (!all_below(norms, stopping.target) && iterations < stopping.iterations) {
    a.apply_and_project(p, ap.data(), products);
    // If nothing moves, <p, A p> is 0 or not finite for every system that still runs.
    if (!step_lengths(norms, products, stopping.target, alpha)) break;
    space.step(alpha, p, ap.data(), x, r, next);
    for (std::size_t i = 0; i < num_rhs; ++i) beta[i] = alpha[i] == 0 ? 0 : quotient(next[i], norms[i]);
    space.direct(r, beta, p);
    norms = next;
    ++iterations;
    progress.at(iterations, norms);
  }
  return iterations;
}

struct SolveCounts {
  std::int64_t iterations = 0;
  std::int64_t reliable_updates = 0;
};

// The solution with the smallest |r|^2, summed over right-hand sides.
template <class Real>
class BestSolution {
 public:
  BestSolution(VectorSpace<Real>& space, const Real* x, std::span<const double> norms)
      : space_(space), kept_(space.make()) {
    keep(x, norms);
  }
  void keep(const Real* x, std::span<const double> norms) {
    least_ = total(norms);
    space_.copy(x, kept_.data());
  }
  [[nodiscard]] double least() const { return least_; }
  void restore_to(Real* x) { space_.copy(kept_.data(), x); }

 private:
  VectorSpace<Real>& space_;
  Buffer<Real> kept_;
  double least_ = 0;
};

// When an iteration in a lower precision recomputes its residual, and whether that still reduces it.
class UpdateRule {
 public:
  // `reduction`: an update comes when |r| has fallen by this factor since the last one. `norms`: |r|^2 at the start.
  UpdateRule(const Stopping& stopping, double reduction, double epsilon, const std::vector<double>& norms)
      : stopping_(stopping), reduction_(reduction), rounding_(1e4 * epsilon), largest_(norms), lowest_(norms) {}

  [[nodiscard]] bool is_due(std::span<const double> norms, std::int64_t iterations) {
    stalled_ = total(lowest_) <= rounding_ * rounding_ * total(stopping_.scale) && iterations - last_ > 4 * longest_;
    bool due = stalled_ || all_below(norms, stopping_.target) || iterations == stopping_.iterations;
    for (std::size_t i = 0; i < norms.size(); ++i) {
      due = due || (!(norms[i] <= stopping_.target[i]) && norms[i] < reduction_ * reduction_ * largest_[i]);
    }
    for (std::size_t i = 0; i < norms.size() && !due; ++i) largest_[i] = std::max(largest_[i], norms[i]);
    return due;
  }
  void updated(const std::vector<double>& norms, std::int64_t iterations) {
    if (!stalled_) longest_ = std::max(longest_, iterations - last_);
    last_ = iterations;
    largest_ = norms;
    bool reduced = false;
    for (std::size_t i = 0; i < norms.size(); ++i) {
      reduced = reduced || norms[i] < 0.9 * lowest_[i];
      lowest_[i] = std::min(lowest_[i], norms[i]);
    }
    idle_ = reduced ? 0 : idle_ + 1;
  }
  [[nodiscard]] bool gains() const { return idle_ < 3; }

 private:
  const Stopping& stopping_;
  double reduction_;
  // A residual at the level of rounding may never fall by `reduction`, and the iterations would not end. There an
  // update also comes after four times the longest interval seen so far.
  double rounding_;
  std::vector<double> largest_, lowest_;  // since the last update, and of all updates
  std::int64_t last_ = 0;
  std::int64_t longest_ = 25;  // iterations between two updates
  bool stalled_ = false;
  int idle_ = 0;  // consecutive updates after which no residual was 10% below its minimum so far
};

// x += factors * part, with a part in a lower precision; then r = b - A x and its norms. `work` is overwritten.
template <class High, class Low>
void add_part(LinearOperator<High>& high, const Low* part, std::span<const double> factors, const High* b, High* x,
              High* r, std::span<double> norms, High* work) {
  VectorSpace<High>& space = high.space();
  convert(space.pool(), part, work, space.size());
  space.add(x, factors, work, x);
  high.residual(b, x, r, norms);
}

// Conjugate gradients in mixed precision with reliable updates (as in Clark et al., arXiv:0911.3191). Iterates with
// `low`. Whenever |r| has fallen by the factor `reduction`, adds the partial solution to x and recomputes r = b - A x
// with `high`; the search direction survives. b, x and r are of high's space, and r = b - A x on entry. Returns the x
// with the smallest residual, summed over right-hand sides.
template <class High, class Low>
SolveCounts mixed_conjugate_gradients(LinearOperator<High>& high, LinearOperator<Low>& low, const High* b, High* x,
                                      High* r, const Stopping& stopping, double reduction) {
  VectorSpace<High>& outer = high.space();
  VectorSpace<Low>& space = low.space();
  const auto num_rhs = static_cast<std::size_t>(space.num_rhs());
  const Buffer<Low> ap = space.make(), part = space.make(), residual = space.make();
  const Buffer<High> work = outer.make();
  Low* const p = low.input();
  std::vector<double> norms(num_rhs), next(num_rhs), products(num_rhs), alpha(num_rhs), beta(num_rhs);
  const std::vector<double> ones(num_rhs, 1.0);
  Progress progress(stopping);
  SolveCounts done;
  outer.norm(r, norms);
  BestSolution<High> best(outer, x, norms);
  bool last_is_best = true;
  convert(space.pool(), r, residual.data(), space.size());
  space.copy(residual.data(), p);
  UpdateRule rule(stopping, reduction, std::numeric_limits<High>::epsilon(), norms);
  while (!all_below(norms, stopping.target) && done.iterations < stopping.iterations && rule.gains()) {
    low.apply_and_project(p, ap.data(), products);
    for (double& product : products) product = std::max(product, 0.0);  // below 0 by rounding: no step
    const bool moves = step_lengths(norms, products, stopping.target, alpha);
    if (moves) {
      space.step(alpha, p, ap.data(), part.data(), residual.data(), next);
      ++done.iterations;
    } else {
      next = norms;
    }
    if (rule.is_due(next, done.iterations) || !moves) {
      add_part<High, Low>(high, part.data(), ones, b, x, r, next, work.data());
      space.zero(part.data());
      convert(space.pool(), r, residual.data(), space.size());
      ++done.reliable_updates;
      rule.updated(next, done.iterations);
      last_is_best = total(next) <= best.least();
      if (last_is_best) best.keep(x, next);
      if (!moves) {
        space.copy(residual.data(), p);
        norms = next;
        continue;
      }
      // The direction loses its component along the new residual.
      std::vector<Coefficient> along(num_rhs), remove(2 * num_rhs, 1.0);
      space.dot(residual.data(), p, along);
      for (std::size_t i = 0; i < num_rhs; ++i) remove[num_rhs + i] = -quotient(1, next[i]) * along[i];
      space.combine(remove, std::array<const Low*, 2>{p, residual.data()}, p);
    }
    for (std::size_t i = 0; i < num_rhs; ++i) beta[i] = quotient(next[i], norms[i]);
    space.direct(residual.data(), beta, p);
    norms = next;
    progress.at(done.iterations, norms);
  }
  if (!last_is_best) best.restore_to(x);
  return done;
}

// What multi-shift CG keeps from one precision to the next: numbers, and in ShiftVectors the vectors.
struct ShiftState {
  std::vector<double> zeta, zeta_before;
  double alpha_before = 1;
  double beta_before = 0;
  double norm = 0;          // |r|^2 of the first shift
  std::size_t running = 0;  // larger shifts converge earlier; shifts [0, running) are still updated
  std::int64_t iterations = 0;

  void begin(std::size_t count) {
    zeta.assign(count, 1.0);
    zeta_before.assign(count, 1.0);
    running = count;
  }
  // The next zeta, and the step lengths, of all shifts that are still updated, for the step length of the first one.
  void step(std::span<const double> shifts, double alpha, std::span<double> zeta_next, std::span<double> alphas) const {
    for (std::size_t s = 0; s < running; ++s) {
      const double below =
          alpha * beta_before * (zeta_before[s] - zeta[s]) + zeta_before[s] * alpha_before * (1 + shifts[s] * alpha);
      zeta_next[s] = s == 0 ? 1 : quotient(zeta[s] * zeta_before[s] * alpha_before, below);
      alphas[s] = alpha * quotient(zeta_next[s], zeta[s]);
    }
  }
};

template <class Real>
struct ShiftVectors {
  Buffer<Real> r;
  std::vector<Buffer<Real>> directions, x;  // one per shift

  ShiftVectors(const VectorSpace<Real>& space, std::size_t count) : r(space.make()) {
    for (std::size_t s = 0; s < count; ++s) {
      directions.push_back(space.make());
      x.push_back(space.make());
    }
  }
  // Continues from vectors in another precision.
  template <class Other>
  void take(const base::ThreadPool& pool, const ShiftVectors<Other>& other) {
    convert(pool, other.r.data(), r.data(), r.size());
    for (std::size_t s = 0; s < x.size(); ++s)
      convert(pool, other.directions[s].data(), directions[s].data(), r.size());
  }
};

// Multi-shift conjugate gradients (Jegerlehner, hep-lat/9612014) for one right-hand side: solves (A + shifts[s]) x[s] =
// b with the operator applications of the smallest shift. shifts ascend from shifts[0] = 0. Stops at |r|^2 <=
// target[s], or once |r|^2 of the first shift is at most `leave`: the caller may continue with the same state in a
// lower precision. An error of an application enters the residuals in proportion to |r|, so that the precision may fall
// with |r| (van den Eshof and Sleijpen, SIAM J. Matrix Anal. Appl. 26 (2004) 125). A state without iterations begins
// with r = b.
template <class Real>
void multi_shift(LinearOperator<Real>& a, std::span<const double> shifts, ShiftVectors<Real>& vectors,
                 ShiftState& state, const Stopping& stopping, double leave = 0) {
  VectorSpace<Real>& space = a.space();
  const std::size_t count = shifts.size();
  const Buffer<Real> ap = space.make();
  Real* r = vectors.r.data();
  std::vector<Real*> directions{a.input()}, solutions;
  for (std::size_t s = 0; s < count; ++s) {
    if (s > 0) directions.push_back(vectors.directions[s].data());
    solutions.push_back(vectors.x[s].data());
    if (state.iterations == 0) space.copy(r, vectors.directions[s].data());
  }
  space.copy(vectors.directions[0].data(), directions[0]);
  const std::span<Real* const> x(solutions);
  // The iteration itself needs only the first shift's direction and the residual. The other shifts are updated once
  // every shift_steps iterations, with all residuals since the last time, so that their vectors pass through memory
  // less often.
  std::array<Buffer<Real>, shift_steps> memory;
  for (Buffer<Real>& each : memory) each = space.make();
  std::vector<const Real*> residuals;
  std::vector<double> late_alphas, late_betas, late_zetas;
  std::vector<double> zeta_next(count, 1.0), alphas(count), betas(count);
  std::array<double, 1> norm{state.norm}, next{}, product{};
  Progress progress(stopping);
  if (state.iterations == 0) {
    space.norm(r, norm);
    state.begin(count);
  }
  std::vector<double>& zeta = state.zeta;
  std::vector<double>& zeta_before = state.zeta_before;
  std::size_t& running = state.running;
  const auto converged = [&](std::size_t s) { return norm[0] * zeta[s] * zeta[s] <= stopping.target[s]; };
  const auto catch_up = [&] {
    if (running > 1 && !residuals.empty()) {
      space.shift(late_alphas, late_betas, late_zetas, residuals, x.subspan(1, running - 1),
                  std::span<Real* const>(directions).subspan(1, running - 1));
    }
    for (auto* each : {&late_alphas, &late_betas, &late_zetas}) each->clear();
    residuals.clear();
  };
  while (running > 0 && converged(running - 1)) --running;
  while (running > 0 && state.iterations < stopping.iterations && norm[0] > leave) {
    a.apply_and_project(directions[0], ap.data(), product);
    const double alpha = quotient(norm[0], product[0]);
    if (!(alpha > 0)) break;
    state.step(shifts, alpha, zeta_next, alphas);
    const std::array<double, 1> step{alpha};
    Real* const stepped = memory[residuals.size()].data();
    space.step_residual(step, ap.data(), r, stepped, next);
    r = stepped;
    residuals.push_back(r);
    const double beta = quotient(next[0], norm[0]);
    for (std::size_t s = 0; s < running; ++s) {
      const double ratio = quotient(zeta_next[s], zeta[s]);
      betas[s] = beta * ratio * ratio;
    }
    space.shift(std::span(alphas).first(1), std::span(betas).first(1), std::span(zeta_next).first(1),
                std::span(residuals).last(1), x.first(1), std::span<Real* const>(directions).first(1));
    for (std::size_t s = 1; s < running; ++s) {
      late_alphas.push_back(alphas[s]);
      late_betas.push_back(betas[s]);
      late_zetas.push_back(zeta_next[s]);
    }
    for (std::size_t s = 0; s < running; ++s) {
      zeta_before[s] = zeta[s];
      zeta[s] = zeta_next[s];
    }
    state.alpha_before = alpha;
    state.beta_before = beta;
    norm = next;
    progress.at(++state.iterations, norm);
    if (residuals.size() == memory.size() || converged(running - 1)) catch_up();
    while (running > 0 && converged(running - 1)) --running;
  }
  catch_up();
  state.norm = norm[0];
  if (r != vectors.r.data()) space.copy(r, vectors.r.data());
  space.copy(directions[0], vectors.directions[0].data());
}

}  // namespace onehop::lattice::detail
