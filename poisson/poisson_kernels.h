// The arithmetic of the Poisson solver on one rank. Every kernel computes at each site, in this order,
//
//   t = b + ((below + above) + (left + right));  y = t * (1 / diagonal);  r = t - diagonal * x
//
// without contraction, so that all give the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace onehop::poisson::detail {

// Rows of a block lie `stride` apart, a multiple of this. Behind each row's sites is padding that kernels may overwrite
// with finite numbers.
inline constexpr std::int64_t row_unit = 8;

// One update of a block, from x to y.
struct PoissonUpdate {
  const double* x = nullptr;
  const double* b = nullptr;
  double* y = nullptr;
  std::int64_t stride = 0;
  std::array<std::int64_t, 2> extents{};
  double diagonal = 4;
  double inverse = 0.25;  // of the diagonal
  // The first and last site of a row are neighbours of each other. Otherwise other blocks have their neighbours.
  bool wraps = false;
  // Adding and subtracting this rounds a squared residual to a multiple of a power of two (see poisson_sum.h).
  double rounder = 0;
};

// The neighbours' faces and this rank's: below and above in dimension 0, below and above in dimension 1. The latter two
// are not used if rows wrap around.
struct PoissonEdges {
  std::array<const double*, 4> in{};
  std::array<double*, 4> out{};
};

// The kernels for one kind of processor. Each returns the sum of the rounded squared residuals of its sites.
struct PoissonKernels {
  std::string_view name;
  // Updates the sites without neighbours in other blocks. Unless rows wrap around, it also writes wrong values at the
  // first and last site of the rows between, which `boundary` corrects.
  void (*interior)(const PoissonUpdate&) = nullptr;
  double (*interior_residual)(const PoissonUpdate&) = nullptr;
  // Updates all other sites; also writes the new faces to edges.out.
  void (*boundary)(const PoissonUpdate&, const PoissonEdges&) = nullptr;
  double (*boundary_residual)(const PoissonUpdate&, const PoissonEdges&) = nullptr;
};

// The kernels that this processor can run, in the order of cpu::Level.
[[nodiscard]] std::span<const PoissonKernels> poisson_kernels();
// The kernels of the level that ONEHOP_SIMD names; without it, the fastest, which the first call measures (100 us).
[[nodiscard]] const PoissonKernels& best_poisson_kernels();

}  // namespace onehop::poisson::detail
