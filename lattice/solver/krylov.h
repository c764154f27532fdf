// The solvers: conjugate gradients, with reliable updates in mixed precision, with several shifts at once, and BiCGStab. They know an
// operator only as LinearOperator, and arithmetic only as VectorSpace; `num_rhs` systems are solved side by side.
//
// A residual that a solver carries along drifts from the true one by rounding. What is given back is therefore to be checked
// with the operator by whoever called (see docs/reference/lattice_solvers.md).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
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

namespace onehop::lattice::detail {

// A in A x = b, on this rank's part of vectors of VectorSpace. Everything is collective.
template <class Real>
class LinearOperator {
 public:
  virtual ~LinearOperator() = default;
  [[nodiscard]] virtual VectorSpace<Real>& space() = 0;
  // A vector from which apply() reads without copying it first, where the operator keeps its ghosts. Solvers put there what they
  // apply the operator to most often; other calls of apply() destroy it.
  [[nodiscard]] virtual Real* input() = 0;
  virtual void apply(const Real* in, Real* out) = 0;
  // The same, and the real parts of <in, A in>, one per right-hand side.
  virtual void apply_and_project(const Real* in, Real* out, std::span<double> products) {
    apply(in, out);
    std::vector<Coefficient> dots(products.size());
    space().dot(in, out, dots);
    for (std::size_t i = 0; i < dots.size(); ++i) products[i] = dots[i].real();
  }
};

// When to end, per right-hand side, and what to tell meanwhile.
struct Stopping {
  std::vector<double> target;       // |r|^2
  std::int64_t iterations = 10000;  // at most
  const SolverProgress* progress = nullptr;
  std::vector<double> scale;  // |b|^2 of the whole system in the same measure, for the progress
};

// Calls back at most four times a second.
class Progress {
 public:
  explicit Progress(const Stopping& stopping) : stopping_(stopping) {}
  void at(std::int64_t iteration, std::span<const double> norms) {
    if (stopping_.progress == nullptr || !*stopping_.progress) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(250)) return;
    last_ = now;
    double worst = 0;
    for (std::size_t i = 0; i < norms.size(); ++i) {
      const double scale = i < stopping_.scale.size() ? stopping_.scale[i] : 1;
      if (scale > 0) worst = std::max(worst, norms[i] / scale);
    }
    (*stopping_.progress)(iteration, std::sqrt(worst));
  }

 private:
  const Stopping& stopping_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

inline bool all_below(std::span<const double> norms, std::span<const double> target) {
  for (std::size_t i = 0; i < norms.size(); ++i) {
    if (!(norms[i] <= target[i])) return false;
  }
  return true;
}

// |b|^2 of every right-hand side, the same on all ranks. Throws BadInput for what is no number: from NaN nothing follows.
inline void check_sources(std::span<const double> squares) {
  for (std::size_t i = 0; i < squares.size(); ++i) {
    if (!std::isfinite(squares[i]))
      throw BadInput("solver: expected right-hand sides of finite numbers and length, found |b|^2 = " +
                     std::to_string(squares[i]) + " of number " + std::to_string(i));
  }
}

inline double total(std::span<const double> norms) {
  double sum = 0;
  for (const double norm : norms) sum += norm;
  return sum;
}

// One step's length and the next direction's share of the old one, for systems that still run; 0 for the others.
inline double quotient(double above, double below) {
  const double value = above / below;
  return std::isfinite(value) ? value : 0;
}

// For a positive Hermitian A. In: x and r = b - A x. Out: both improved until |r|^2 <= target. Returns the iterations.
template <class Real>
std::int64_t conjugate_gradients(LinearOperator<Real>& a, Real* x, Real* r, const Stopping& stopping,
                                 std::int64_t done = 0) {
  VectorSpace<Real>& space = a.space();
  const auto num_rhs = static_cast<std::size_t>(space.num_rhs());
  const Buffer<Real> ap = space.make();
  Real* const p = a.input();
  std::vector<double> norms(num_rhs), next(num_rhs), products(num_rhs), alpha(num_rhs), beta(num_rhs);
  Progress progress(stopping);
  space.copy(r, p);
  space.norm(r, norms);
  std::int64_t iterations = 0;
  while (!all_below(norms, stopping.target) && iterations + done < stopping.iterations) {
    a.apply_and_project(p, ap.data(), products);
    bool moves = false;
    for (std::size_t i = 0; i < num_rhs; ++i) {
      alpha[i] = norms[i] <= stopping.target[i] ? 0 : quotient(norms[i], products[i]);
      moves = moves || alpha[i] != 0;
    }
    if (!moves) break;  // rounding has eaten what was left, or the operator is not positive
    space.step(alpha, p, ap.data(), x, r, next);
    for (std::size_t i = 0; i < num_rhs; ++i) beta[i] = alpha[i] == 0 ? 0 : quotient(next[i], norms[i]);
    space.direct(r, beta, p);
    norms = next;
    ++iterations;
    progress.at(done + iterations, norms);
  }
  return iterations;
}

struct MixedResult {
  std::int64_t iterations = 0;
  std::int64_t reliable_updates = 0;
};

// The same in two precisions: iterations with `low`, and whenever the residual has fallen by `reduction`, the solution is added up and the
// residual made anew with `high` (reliable updates), while the search goes on in its direction. b, x and r are of high's space. Of the
// solutions that were added up the one with the smallest residual is given back.
template <class High, class Low>
MixedResult mixed_conjugate_gradients(LinearOperator<High>& high, LinearOperator<Low>& low, const High* b, High* x,
                                      High* r, const Stopping& stopping, double reduction) {
  VectorSpace<High>& outer = high.space();
  VectorSpace<Low>& space = low.space();
  const auto num_rhs = static_cast<std::size_t>(space.num_rhs());
  const Buffer<Low> ap = space.make(), part = space.make(), residual = space.make();
  const Buffer<High> product = outer.make(), best = outer.make();
  Low* const p = low.input();
  std::vector<double> norms(num_rhs), next(num_rhs), products(num_rhs), alpha(num_rhs), beta(num_rhs), largest(num_rhs);
  const std::vector<Coefficient> one_minus_one = [&] {
    std::vector<Coefficient> all(2 * num_rhs, 1.0);
    std::fill(all.begin() + static_cast<std::ptrdiff_t>(num_rhs), all.end(), -1.0);
    return all;
  }();
  Progress progress(stopping);
  MixedResult result;
  outer.norm(r, norms);
  outer.copy(x, best.data());
  double least = total(norms);
  bool last_is_best = true;
  convert(space.team(), r, residual.data(), space.size());
  space.copy(residual.data(), p);
  largest = norms;
  std::vector<double> lowest = norms;
  int idle = 0;  // corrections in a row that have not made a residual smaller than it ever was
  // Residuals that are rounding alone may never fall to a tenth, and inner iterations go on for ever: there corrections also come after
  // some time.
  constexpr double rounding = 1e4 * std::numeric_limits<High>::epsilon();
  std::int64_t corrected_at = 0;
  std::int64_t longest = 25;  // iterations between two corrections
  while (!all_below(norms, stopping.target) && result.iterations < stopping.iterations && idle < 3) {
    low.apply_and_project(p, ap.data(), products);
    bool moves = false;
    for (std::size_t i = 0; i < num_rhs; ++i) {
      alpha[i] = norms[i] <= stopping.target[i] ? 0 : quotient(norms[i], products[i]);
      if (alpha[i] < 0) alpha[i] = 0;
      moves = moves || alpha[i] != 0;
    }
    if (moves) {
      space.step(alpha, p, ap.data(), part.data(), residual.data(), next);
      ++result.iterations;
    } else {
      next = norms;
    }
    const bool of_rounding = total(lowest) <= rounding * rounding * total(stopping.scale);
    const bool waits_in_vain = of_rounding && result.iterations - corrected_at > 4 * longest;
    bool correct = !moves || waits_in_vain;
    bool all_done = true;
    for (std::size_t i = 0; i < num_rhs; ++i) {
      const bool done = next[i] <= stopping.target[i];
      all_done = all_done && done;
      correct = correct || (!done && next[i] < reduction * reduction * largest[i]);
    }
    if (correct || all_done || result.iterations == stopping.iterations) {
      // x += part, r = b - A x, and the direction stays but for its component along the new residual.
      convert(outer.team(), part.data(), product.data(), outer.size());
      const std::array<const High*, 2> sum{x, product.data()};
      outer.combine(std::vector<Coefficient>(2 * num_rhs, 1.0), sum, x);
      space.zero(part.data());
      high.apply(x, product.data());
      const std::array<const High*, 2> difference{b, product.data()};
      outer.combine(one_minus_one, difference, r);
      outer.norm(r, next);
      convert(space.team(), r, residual.data(), space.size());
      ++result.reliable_updates;
      if (!waits_in_vain) longest = std::max(longest, result.iterations - corrected_at);
      corrected_at = result.iterations;
      last_is_best = total(next) <= least;
      if (last_is_best) {
        least = total(next);
        outer.copy(x, best.data());
      }
      bool reduced = false;
      for (std::size_t i = 0; i < num_rhs; ++i) {
        reduced = reduced || next[i] < 0.9 * lowest[i];
        lowest[i] = std::min(lowest[i], next[i]);
      }
      idle = reduced ? 0 : idle + 1;
      largest = next;
      if (!moves) {
        space.copy(residual.data(), p);
        norms = next;
        continue;
      }
      std::vector<Coefficient> along(num_rhs), remove(2 * num_rhs, 1.0);
      space.dot(residual.data(), p, along);
      for (std::size_t i = 0; i < num_rhs; ++i) remove[num_rhs + i] = -quotient(1, next[i]) * along[i];
      const std::array<const Low*, 2> terms{p, residual.data()};
      space.combine(remove, terms, p);
    } else {
      for (std::size_t i = 0; i < num_rhs; ++i) largest[i] = std::max(largest[i], next[i]);
    }
    for (std::size_t i = 0; i < num_rhs; ++i) beta[i] = quotient(next[i], norms[i]);
    space.direct(residual.data(), beta, p);
    norms = next;
    progress.at(result.iterations, norms);
  }
  if (!last_is_best) outer.copy(best.data(), x);
  return result;
}

// (A + shifts[s]) x[s] = b for all shifts at once, with the applications that the smallest shift needs; shifts[0] = 0 and the others
// positive. One right-hand side. In: r = b, which it does not keep. Out: x; a shift is left alone once its |r|^2 <= target[s].
template <class Real>
std::int64_t multi_shift(LinearOperator<Real>& a, std::span<const double> shifts,
                         std::type_identity_t<std::span<Real* const>> x, Real* r, const Stopping& stopping) {
  VectorSpace<Real>& space = a.space();
  const std::size_t count = shifts.size();
  const Buffer<Real> ap = space.make();
  std::vector<Buffer<Real>> own;
  std::vector<Real*> directions{a.input()};
  for (std::size_t s = 1; s < count; ++s) directions.push_back(own.emplace_back(space.make()).data());
  for (std::size_t s = 0; s < count; ++s) {
    space.zero(x[s]);
    space.copy(r, directions[s]);
  }
  // The iteration needs the first shift's direction and the residual. What the others do with the residuals they do for some at once,
  // so that their vectors are read and written less often.
  std::array<Buffer<Real>, shift_steps> memory;
  for (Buffer<Real>& each : memory) each = space.make();
  std::vector<const Real*> residuals;
  std::vector<double> late_alphas, late_betas, late_zetas;
  std::vector<double> zeta(count, 1.0), zeta_before(count, 1.0), zeta_next(count, 1.0), alphas(count), betas(count);
  std::array<double, 1> norm{}, next{}, product{};
  Progress progress(stopping);
  space.norm(r, norm);
  double alpha_before = 1;
  double beta_before = 0;
  std::int64_t iterations = 0;
  std::size_t running = count;  // shifts converge from the largest; those in front of `running` go on
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
  while (running > 0 && iterations < stopping.iterations) {
    a.apply_and_project(directions[0], ap.data(), product);
    const double alpha = quotient(norm[0], product[0]);
    if (!(alpha > 0)) break;
    for (std::size_t s = 0; s < running; ++s) {
      const double below =
          alpha * beta_before * (zeta_before[s] - zeta[s]) + zeta_before[s] * alpha_before * (1 + shifts[s] * alpha);
      zeta_next[s] = s == 0 ? 1 : quotient(zeta[s] * zeta_before[s] * alpha_before, below);
      alphas[s] = alpha * quotient(zeta_next[s], zeta[s]);
    }
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
    alpha_before = alpha;
    beta_before = beta;
    norm = next;
    ++iterations;
    progress.at(iterations, norm);
    if (residuals.size() == memory.size() || converged(running - 1)) catch_up();
    while (running > 0 && converged(running - 1)) --running;
  }
  catch_up();
  return iterations;
}

// For any A that has an inverse. In: x and r = b - A x. Out: both improved until |r|^2 <= target. Returns the iterations, of two
// applications each. Where it stagnates or breaks down it begins anew with the residual at hand; where the residual only grows, it
// gives up. Residuals go up and down here: x of one that ends with a larger one than it had on its way is that of then (and r is not).
template <class Real>
std::int64_t bicgstab(LinearOperator<Real>& a, Real* x, Real* r, const Stopping& stopping, std::int64_t done = 0) {
  VectorSpace<Real>& space = a.space();
  const auto num_rhs = static_cast<std::size_t>(space.num_rhs());
  const Buffer<Real> shadow = space.make(), direction = space.make(), v = space.make(), t = space.make();
  std::vector<Coefficient> rho(num_rhs), rho_next(num_rhs), alpha(num_rhs), omega(num_rhs), dots(num_rhs),
      minus(num_rhs);
  std::vector<double> norms(num_rhs), squares(num_rhs);
  Progress progress(stopping);
  const auto ratio = [](Coefficient above, Coefficient below) {
    const Coefficient value = above / below;
    return std::isfinite(value.real()) && std::isfinite(value.imag()) ? value : Coefficient{};
  };
  // y = sum of two or three terms with the given coefficients.
  const auto sum = [&](std::initializer_list<std::pair<const std::vector<Coefficient>*, const Real*>> terms, Real* y) {
    std::vector<Coefficient> all;
    std::vector<const Real*> fields;
    for (const auto& [coefficients, field] : terms) {
      all.insert(all.end(), coefficients->begin(), coefficients->end());
      fields.push_back(field);
    }
    space.combine(all, fields, y);
  };
  const std::vector<Coefficient> one(num_rhs, 1.0);
  const auto negative = [](const std::vector<Coefficient>& from, std::vector<Coefficient>& to) {
    std::ranges::transform(from, to.begin(), [](Coefficient c) { return -c; });
  };
  const auto restart = [&] {
    space.copy(r, shadow.data());
    space.copy(r, direction.data());
    space.norm(r, norms);
    for (std::size_t i = 0; i < num_rhs; ++i) rho[i] = norms[i];
  };
  restart();
  constexpr double hopeless = 1e10;  // |r|^2 over that of the beginning: peaks on the way are far lower
  std::vector<double> most(norms);
  for (double& norm : most) norm *= hopeless;
  const Buffer<Real> best = space.make();
  space.copy(x, best.data());
  double least = total(norms);
  constexpr double worth_keeping = 1e-2;  // of |r|^2, so that it is rarely copied
  std::int64_t iterations = 0;
  std::vector<Coefficient> beta(num_rhs), beta_omega(num_rhs);
  while (!all_below(norms, stopping.target) && iterations + done < stopping.iterations) {
    a.apply(direction.data(), v.data());
    space.dot(shadow.data(), v.data(), dots);
    for (std::size_t i = 0; i < num_rhs; ++i)
      alpha[i] = norms[i] <= stopping.target[i] ? Coefficient{} : ratio(rho[i], dots[i]);
    negative(alpha, minus);
    sum({{&one, r}, {&minus, v.data()}}, r);
    a.apply(r, t.data());
    space.dot(t.data(), r, dots);
    space.norm(t.data(), squares);
    for (std::size_t i = 0; i < num_rhs; ++i)
      omega[i] = norms[i] <= stopping.target[i] ? 0 : ratio(dots[i], squares[i]);
    sum({{&one, x}, {&alpha, direction.data()}, {&omega, r}}, x);
    negative(omega, minus);
    sum({{&one, r}, {&minus, t.data()}}, r);
    space.norm(r, norms);
    space.dot(shadow.data(), r, rho_next);
    ++iterations;
    progress.at(done + iterations, norms);
    if (!all_below(norms, most)) break;
    if (total(norms) < worth_keeping * least) {
      least = total(norms);
      space.copy(x, best.data());
    }
    bool broken = false;
    for (std::size_t i = 0; i < num_rhs; ++i) {
      const bool runs = !(norms[i] <= stopping.target[i]);
      beta[i] = ratio(rho_next[i], rho[i]) * ratio(alpha[i], omega[i]);
      broken = broken || (runs && (beta[i] == Coefficient{} || omega[i] == Coefficient{}));
      beta_omega[i] = -beta[i] * omega[i];
    }
    if (broken) {
      restart();
      bool dead = true;  // not even a first step is possible from here
      for (std::size_t i = 0; i < num_rhs; ++i) dead = dead && (alpha[i] == Coefficient{} || !std::isfinite(norms[i]));
      if (dead) break;
      continue;
    }
    sum({{&one, r}, {&beta, direction.data()}, {&beta_omega, v.data()}}, direction.data());
    rho = rho_next;
  }
  if (!(total(norms) <= least)) space.copy(best.data(), x);
  return iterations;
}

// Solves in `high` by corrections that `solve` finds in a lower precision: solve(low_r, low_x, stopping, iterations so far) -> iterations.
template <class High, class Low, class Solve>
MixedResult corrected(LinearOperator<High>& high, VectorSpace<Low>& space, const High* b, High* x, High* r,
                      const Stopping& stopping, double reduction, Solve&& solve) {
  VectorSpace<High>& outer = high.space();
  const auto num_rhs = static_cast<std::size_t>(outer.num_rhs());
  const Buffer<Low> part = space.make(), residual = space.make();
  const Buffer<High> product = outer.make();
  std::vector<double> norms(num_rhs), next(num_rhs);
  std::vector<Coefficient> difference(2 * num_rhs, 1.0);
  std::fill(difference.begin() + static_cast<std::ptrdiff_t>(num_rhs), difference.end(), -1.0);
  MixedResult result;
  outer.norm(r, norms);
  int idle = 0;
  while (!all_below(norms, stopping.target) && result.iterations < stopping.iterations && idle < 3) {
    convert(space.team(), r, residual.data(), space.size());
    space.zero(part.data());
    Stopping inner = stopping;
    for (std::size_t i = 0; i < num_rhs; ++i)
      inner.target[i] = std::max(stopping.target[i], reduction * reduction * norms[i]);
    const std::int64_t needed = solve(residual.data(), part.data(), inner, result.iterations);
    result.iterations += needed;
    convert(outer.team(), part.data(), product.data(), outer.size());
    const std::array<const High*, 2> sum{x, product.data()};
    outer.combine(std::vector<Coefficient>(2 * num_rhs, 1.0), sum, x);
    high.apply(x, product.data());
    const std::array<const High*, 2> terms{b, product.data()};
    outer.combine(difference, terms, r);
    outer.norm(r, next);
    ++result.reliable_updates;
    bool reduced = false;
    bool worse = false;
    std::vector<Coefficient> undo(2 * num_rhs, 1.0);
    for (std::size_t i = 0; i < num_rhs; ++i) {
      reduced = reduced || next[i] < 0.9 * norms[i];
      const bool grew = !(next[i] <= norms[i]);
      undo[num_rhs + i] = grew ? -1.0 : 0.0;
      worse = worse || grew;
    }
    idle = reduced && needed > 0 ? 0 : idle + 1;
    if (!worse) {
      norms = next;
      continue;
    }
    convert(outer.team(), part.data(), product.data(), outer.size());
    outer.combine(undo, sum, x);
    high.apply(x, product.data());
    outer.combine(difference, terms, r);
    outer.norm(r, norms);
  }
  return result;
}

}  // namespace onehop::lattice::detail
