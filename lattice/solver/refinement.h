// Iterative refinement: the stopping rule of all solves in two precisions, and the loop of those that restart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lattice/solver/krylov.h"

namespace onehop::lattice::detail {

// The part of the tolerated |r|^2 to which iterations go. Their residual drifts away from the true one by rounding, so
// they aim 10% below the tolerance of |r|; the true residual then reaches it in most cases at the first attempt.
inline constexpr double margin = 0.81;

// When the iterations of a solve stop. `squares`: |b|^2 per right-hand side; `factor`: by how much |b|^2 and |r|^2 of
// the system that is solved differ from those of the whole one.
inline Stopping stopping_rule(const SolverOptions& options, std::int64_t done, std::span<const double> squares,
                              double factor = 1) {
  Stopping stopping;
  stopping.iterations = options.iterations - done;
  stopping.progress = &options.progress;
  for (const double square : squares) {
    stopping.target.push_back(margin * options.tolerance * options.tolerance * square * factor);
    stopping.scale.push_back(square * factor);
  }
  return stopping;
}

struct RefinementLimits {
  int attempts = 3;
  double margin = 1;  // a solution is accepted when the true |r|^2 is at most target / margin
  // The total |r|^2 at the start, if an attempt may end with a worse solution than it began with; the refinement then
  // ends, and returns the better one.
  std::optional<double> total = {};
};

// Repeats counts = attempt(stopping), which improves x from r = b - A x, with the true residual recomputed after each
// attempt, until it is low enough. Adds the counts to the report.
template <class Real, class Attempt>
void refine(LinearOperator<Real>& a, const Real* b, Real* x, Real* r, Stopping stopping, const RefinementLimits& limits,
            SolverReport& report, Attempt&& attempt) {
  VectorSpace<Real>& space = a.space();
  const std::int64_t end = report.iterations + stopping.iterations;
  std::vector<double> norms(static_cast<std::size_t>(space.num_rhs())), accepted = stopping.target;
  for (double& each : accepted) each /= limits.margin;
  double least = limits.total.value_or(0);
  const Buffer<Real> before = limits.total ? space.make() : Buffer<Real>();
  for (int number = 0; number < limits.attempts && report.iterations < end; ++number) {
    if (limits.total) space.copy(x, before.data());
    stopping.iterations = end - report.iterations;
    const SolveCounts done = attempt(stopping);
    report.iterations += done.iterations;
    report.reliable_updates += done.reliable_updates;
    a.residual(b, x, r, norms);
    if (limits.total && !(total(norms) < least)) return space.copy(before.data(), x);
    least = total(norms);
    if (stopping.stalled() || all_below(norms, accepted)) return;
  }
}

// Refines with a solver in a lower precision: x += the corrections that `solve` finds; one that increases a residual is
// undone. On entry r = b - A x. solve(low_r, low_x, stopping, iterations so far) starts from low_x = 0 and returns its
// iterations.
template <class High, class Low, class Solve>
SolveCounts corrected(LinearOperator<High>& high, VectorSpace<Low>& space, const High* b, High* x, High* r,
                      const Stopping& stopping, double reduction, Solve&& solve) {
  VectorSpace<High>& outer = high.space();
  const auto num_rhs = static_cast<std::size_t>(outer.num_rhs());
  const Buffer<Low> part = space.make(), residual = space.make();
  const Buffer<High> work = outer.make();
  std::vector<double> norms(num_rhs), next(num_rhs);
  const std::vector<double> ones(num_rhs, 1.0);
  SolveCounts done;
  outer.norm(r, norms);
  int idle = 0;  // consecutive corrections that did not reduce any residual by 10%
  while (!all_below(norms, stopping.target) && done.iterations < stopping.iterations && idle < 3 &&
         !stopping.stalled()) {
    convert(space.pool(), r, residual.data(), space.size());
    space.zero(part.data());
    Stopping inner = stopping;
    for (std::size_t i = 0; i < num_rhs; ++i)
      inner.target[i] = std::max(stopping.target[i], reduction * reduction * norms[i]);
    const std::int64_t needed = solve(residual.data(), part.data(), inner, done.iterations);
    done.iterations += needed;
    add_part<High, Low>(high, part.data(), ones, b, x, r, next, work.data());
    ++done.reliable_updates;
    bool reduced = false;
    bool worse = false;
    std::vector<double> undo(num_rhs);
    for (std::size_t i = 0; i < num_rhs; ++i) {
      reduced = reduced || next[i] < 0.9 * norms[i];
      const bool grew = !(next[i] <= norms[i]);
      undo[i] = grew ? -1.0 : 0.0;
      worse = worse || grew;
    }
    idle = reduced && needed > 0 ? 0 : idle + 1;
    if (worse) {
      add_part<High, Low>(high, part.data(), undo, b, x, r, norms, work.data());
    } else {
      norms = next;
    }
  }
  return done;
}

}  // namespace onehop::lattice::detail
