// BiCGStab.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "lattice/solver/krylov.h"

namespace onehop::lattice::detail {

// BiCGStab (van der Vorst, 1992) for any nonsingular A. On entry r = b - A x. Updates x and r until |r|^2 <= target.
// Returns the iterations, of two applications each. Restarts after a breakdown, and gives up when |r| has grown by 1e5
// or the rule of `stopping` says that it stalls.
// The residual is not monotonic: if it ends above the smallest one that was saved, x is the saved solution, while r
// stays that of the last iteration.
template <class Real>
std::int64_t bicgstab(LinearOperator<Real>& a, Real* x, Real* r, const Stopping& stopping, std::int64_t done = 0) {
  constexpr double divergence = 1e10;    // growth of |r|^2 at which it gives up; a converging solve peaks far lower
  constexpr double worth_saving = 1e-2;  // fall of |r|^2 since the last copy of x; copies cost time
  VectorSpace<Real>& space = a.space();
  const auto num_rhs = static_cast<std::size_t>(space.num_rhs());
  const Buffer<Real> shadow = space.make(), direction = space.make(), v = space.make(), t = space.make();
  std::vector<Coefficient> rho(num_rhs), rho_next(num_rhs), alpha(num_rhs), beta(num_rhs), beta_omega(num_rhs),
      omega(num_rhs), dots(num_rhs), minus(num_rhs);
  const std::vector<Coefficient> one(num_rhs, 1.0);
  std::vector<double> norms(num_rhs), squares(num_rhs);
  Progress progress(stopping);
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
  // r -= coefficients * field
  const auto reduce = [&](const std::vector<Coefficient>& coefficients, const Real* field) {
    std::ranges::transform(coefficients, minus.begin(), [](Coefficient c) { return -c; });
    sum({{&one, r}, {&minus, field}}, r);
  };
  const auto restart = [&] {
    space.copy(r, shadow.data());
    space.copy(r, direction.data());
    space.norm(r, norms);
    std::ranges::copy(norms, rho.begin());
  };
  restart();
  std::vector<double> largest(norms);
  for (double& norm : largest) norm *= divergence;
  BestSolution<Real> best(space, x, norms);
  if (stopping.stall != nullptr) stopping.stall->begin(norms);
  std::int64_t iterations = 0;
  while (!all_below(norms, stopping.target) && iterations + done < stopping.iterations) {
    a.apply(direction.data(), v.data());
    space.dot(shadow.data(), v.data(), dots);
    for (std::size_t i = 0; i < num_rhs; ++i)
      alpha[i] = norms[i] <= stopping.target[i] ? Coefficient{} : quotient(rho[i], dots[i]);
    reduce(alpha, v.data());
    a.apply(r, t.data());
    space.dot(t.data(), r, dots);
    space.norm(t.data(), squares);
    for (std::size_t i = 0; i < num_rhs; ++i)
      omega[i] = norms[i] <= stopping.target[i] ? 0 : quotient(dots[i], Coefficient{squares[i]});
    sum({{&one, x}, {&alpha, direction.data()}, {&omega, r}}, x);
    reduce(omega, t.data());
    space.norm(r, norms);
    space.dot(shadow.data(), r, rho_next);
    progress.at(done + ++iterations, norms);
    if (!all_below(norms, largest)) break;
    if (stopping.stall != nullptr && stopping.stall->stalls(norms)) break;
    if (total(norms) < worth_saving * best.least()) best.keep(x, norms);
    bool broken = false;
    bool dead = true;  // a restart would not make a step either
    for (std::size_t i = 0; i < num_rhs; ++i) {
      beta[i] = quotient(rho_next[i], rho[i]) * quotient(alpha[i], omega[i]);
      beta_omega[i] = -beta[i] * omega[i];
      const bool runs = !(norms[i] <= stopping.target[i]);
      broken = broken || (runs && (beta[i] == Coefficient{} || omega[i] == Coefficient{}));
      dead = dead && (alpha[i] == Coefficient{} || !std::isfinite(norms[i]));
    }
    if (broken) {
      restart();
      if (dead) break;
      continue;
    }
    sum({{&one, r}, {&beta, direction.data()}, {&beta_omega, v.data()}}, direction.data());
    rho = rho_next;
  }
  if (!(total(norms) <= best.least())) best.restore_to(x);
  return iterations;
}

}  // namespace onehop::lattice::detail
