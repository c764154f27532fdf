// BiCGStab, and iterative refinement around a solver in a lower precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lattice/solver/krylov.h"

namespace onehop::lattice::detail {

// BiCGStab (van der Vorst, 1992) for any nonsingular A. On entry r = b - A x. Updates x and r until |r|^2 <= target.
// Returns the iterations, of two applications each. Restarts after a breakdown, and gives up when |r| has grown by 1e5.
// The residual is not monotonic: if it ends above the smallest one that was saved, x is the saved solution, while r
// stays that of the last iteration.
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
  // y = the sum of the terms, each times its coefficients.
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
  constexpr double divergence = 1e10;  // growth of |r|^2 at which it gives up; a converging solve peaks far lower
  std::vector<double> largest(norms);
  for (double& norm : largest) norm *= divergence;
  const Buffer<Real> best = space.make();
  space.copy(x, best.data());
  double least = total(norms);
  constexpr double worth_saving = 1e-2;  // fall of |r|^2 since the last copy of x; copies cost time
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
    if (!all_below(norms, largest)) break;
    if (total(norms) < worth_saving * least) {
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
      bool dead = true;  // a restart would not make a step either
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

// Iterative refinement: x += the corrections that `solve` finds in a lower precision; one that increases a residual is
// undone. On entry r = b - A x. solve(low_r, low_x, stopping, iterations so far) starts from low_x = 0 and returns its
// iterations.
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
    convert(space.pool(), r, residual.data(), space.size());
    space.zero(part.data());
    Stopping inner = stopping;
    for (std::size_t i = 0; i < num_rhs; ++i)
      inner.target[i] = std::max(stopping.target[i], reduction * reduction * norms[i]);
    const std::int64_t needed = solve(residual.data(), part.data(), inner, result.iterations);
    result.iterations += needed;
    convert(outer.pool(), part.data(), product.data(), outer.size());
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
    convert(outer.pool(), part.data(), product.data(), outer.size());
    outer.combine(undo, sum, x);
    high.apply(x, product.data());
    outer.combine(difference, terms, r);
    outer.norm(r, norms);
  }
  return result;
}

}  // namespace onehop::lattice::detail
