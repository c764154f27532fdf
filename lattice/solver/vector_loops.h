// The inner loops of VectorSpace, over vectors [first, last).
#pragma once

#include <array>

#include "lattice/solver/vector_space.h"
#include "lattice/support/best_loop.h"

namespace onehop::lattice::detail {

// Arguments of dot and norm. Sums go to `plain`, or to `wide` if `is_wide`: [rhs][re, im] for dot, [rhs] for norm.
template <class Real>
struct DotLoop {
  FieldShape shape;
  std::int64_t first = 0;
  std::int64_t last = 0;
  const Real* a = nullptr;
  const Real* b = nullptr;
  double* plain = nullptr;
  Superaccumulator* wide = nullptr;
  bool is_wide = false;
};

// Arguments of VectorSpace::step(), and without x and p of step_residual(). `stepped` receives r - alpha q and may be
// r.
template <class Real>
struct StepLoop {
  FieldShape shape;
  std::int64_t first = 0;
  std::int64_t last = 0;
  const double* alpha = nullptr;
  const Real* p = nullptr;
  const Real* q = nullptr;
  Real* x = nullptr;
  Real* r = nullptr;
  Real* stepped = nullptr;
  double* plain = nullptr;
  Superaccumulator* wide = nullptr;
  bool is_wide = false;
};

template <class Real>
struct DirectLoop {
  FieldShape shape;
  std::int64_t first = 0;
  std::int64_t last = 0;
  const double* beta = nullptr;
  const Real* r = nullptr;
  Real* p = nullptr;
};

template <class Real>
struct CombineLoop {
  FieldShape shape;
  std::int64_t first = 0;
  std::int64_t last = 0;
  const Coefficient* coefficients = nullptr;
  std::array<const Real*, 4> terms{};
  int count = 0;
  Real* y = nullptr;
};

// Arguments of VectorSpace::shift().
template <class Real>
struct ShiftLoop {
  FieldShape shape;
  std::int64_t first = 0;
  std::int64_t last = 0;
  const double* alpha = nullptr;
  const double* beta = nullptr;
  const double* zeta = nullptr;
  std::array<const Real*, shift_steps> r{};
  int steps = 1;
  Real* const* x = nullptr;
  Real* const* p = nullptr;
  int shifts = 0;
};

template <class Real>
struct VectorLoops {
  LoopFunction<DotLoop<Real>> dot;
  LoopFunction<DotLoop<Real>> norm;
  LoopFunction<StepLoop<Real>> step;
  LoopFunction<DirectLoop<Real>> direct;
  LoopFunction<CombineLoop<Real>> combine;
  LoopFunction<ShiftLoop<Real>> shift;
};

// Returns the loops for 1, 2, 4, 8 or 16 lanes and the instruction set cpu::level().
template <class Real>
[[nodiscard]] VectorLoops<Real> loops(int lanes);

}  // namespace onehop::lattice::detail
