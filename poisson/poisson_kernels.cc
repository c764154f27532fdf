// Compiled without contraction of products and sums, whatever the target (see CMakeLists.txt).
#include "poisson/poisson_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "src/base/clock.h"
#include "src/base/cpu.h"
#include "src/base/simd.h"

namespace onehop::poisson::detail {

namespace {

// A vector of `width` doubles, which may be several registers or part of one.
template <int width>
using Doubles = simd::Vector<double, width>;

// A squared residual, rounded. Works for one double and for lanes of them.
template <class Value>
[[gnu::always_inline]] inline Value rounded_square(const PoissonUpdate& u, Value t, Value x) {
  const Value r = t - u.diagonal * x;
  return (r * r + u.rounder) - u.rounder;
}

// How update_interior goes through a block.
struct Blocking {
  int rows = 1;  // updated together, so that a row loaded as a neighbour from below serves as one from above too
  // Left and right neighbours come from registers: loads one site beside a line's beginning touch two lines.
  bool shuffled = false;
};

// `v`, moved up by one lane, with the last lane of `before` in front.
template <class Vector, int width>
[[gnu::always_inline]] inline Vector left_neighbours(Vector before, Vector v) {
  simd::Mask<Vector> source;
  for (int l = 0; l < width; ++l) source[l] = width - 1 + l;
  return simd::shuffle(before, v, source);
}

// `v`, moved down by one lane, with the first lane of `behind` at the end.
template <class Vector, int width>
[[gnu::always_inline]] inline Vector right_neighbours(Vector v, Vector behind) {
  simd::Mask<Vector> source;
  for (int l = 0; l < width; ++l) source[l] = 1 + l;
  return simd::shuffle(v, behind, source);
}

// The masks of a row's first and last vector.
template <int width>
struct RowEnds {
  using Mask = simd::Mask<Doubles<width>>;
  // `ends` is the number of sites at either end that do not contribute to the sum of the vectors: 0 or 1.
  RowEnds(std::int64_t columns, std::int64_t ends) : last((columns - 1) / width * width) {
    for (int l = 0; l < width; ++l) {
      counts_at_first[l] = l >= ends ? -1 : 0;
      counts_at_last[l] = last + l < columns - ends ? -1 : 0;
      last_site[l] = last + l == columns - 1 ? -1 : 0;
    }
  }
  std::int64_t last;  // where the last vector begins
  Mask counts_at_first{};
  Mask counts_at_last{};  // not the padding
  Mask last_site{};       // in the last vector
};

// Updates one site; returns its contribution to the sum.
template <bool residual>
[[gnu::always_inline]] inline double update_site(const PoissonUpdate& u, std::int64_t at, double below, double above,
                                                 double left, double right) {
  const double t = u.b[at] + ((below + above) + (left + right));
  u.y[at] = t * u.inverse;
  if constexpr (residual) return rounded_square<double>(u, t, u.x[at]);
  return 0;
}

// Updates the first and the last site of a row that wraps around and that has rows of the same block on both sides.
template <bool residual>
[[gnu::always_inline]] inline double update_wrapped_ends(const PoissonUpdate& u, std::int64_t row) {
  const std::int64_t end = u.extents[1] - 1;
  const std::int64_t first = row * u.stride;
  const std::int64_t last = first + end;
  const double* x = u.x;
  const double square = update_site<residual>(u, first, x[first - u.stride], x[first + u.stride], x[last],
                                              x[end > 0 ? first + 1 : first]);
  if (end == 0) return square;
  return square + update_site<residual>(u, last, x[last - u.stride], x[last + u.stride], x[last - 1], x[first]);
}

// Updates how.rows rows from `row` on. Adds the squares of each of these rows to a sum of its own.
template <int width, Blocking how, bool residual, bool wraps>
[[gnu::always_inline]] inline void update_rows(const PoissonUpdate& u, std::int64_t row, const RowEnds<width>& ends,
                                               Doubles<width>* sums) {
  using Vector = Doubles<width>;
  constexpr int rows = how.rows;
  // Copies, so that the compiler knows that no store changes them.
  const std::int64_t columns = u.extents[1];
  const std::int64_t stride = u.stride;
  const double inverse = u.inverse;
  const double* x = u.x + row * stride;
  const double* b = u.b + row * stride;
  double* y = u.y + row * stride;
  Vector before[rows];  // the vectors left of the current ones; in front of a row any finite number will do
  Vector at[rows + 2];  // the current vectors, with the rows below and above
  for (int r = 0; r < rows; ++r) before[r] = at[r + 1] = simd::load<Vector>(x + r * stride);
  if constexpr (wraps && how.shuffled) {
    for (int r = 0; r < rows; ++r) before[r] = simd::all<Vector>(x[r * stride + columns - 1]);
  }
  for (std::int64_t j = 0; j < columns; j += width) {
    at[0] = simd::load<Vector>(x + j - stride);
    at[rows + 1] = simd::load<Vector>(x + j + rows * stride);
    Vector behind[rows];
    for (int r = 0; r < rows; ++r) {
      const double* here = x + j + r * stride;
      if constexpr (how.shuffled) {
        behind[r] = simd::load<Vector>(here + width);
      } else {
        at[r + 1] = simd::load<Vector>(here);
      }
    }
    for (int r = 0; r < rows; ++r) {
      const double* here = x + j + r * stride;
      Vector sides;
      if constexpr (how.shuffled) {
        Vector to_right = right_neighbours<Vector, width>(at[r + 1], behind[r]);
        if (wraps && j == ends.last) to_right = ends.last_site ? simd::all<Vector>(x[r * stride]) : to_right;
        sides = left_neighbours<Vector, width>(before[r], at[r + 1]) + to_right;
      } else {
        sides = simd::load<Vector>(here - 1) + simd::load<Vector>(here + 1);
      }
      const Vector t = simd::load<Vector>(b + j + r * stride) + ((at[r] + at[r + 2]) + sides);
      simd::store(y + j + r * stride, Vector(t * inverse));
      if constexpr (residual) {
        auto square = simd::Mask<Vector>(rounded_square<Vector>(u, t, at[r + 1]));
        if (j == 0) square &= ends.counts_at_first;
        if (j == ends.last) square &= ends.counts_at_last;
        sums[r] += Vector(square);
      }
    }
    if constexpr (how.shuffled) {
      for (int r = 0; r < rows; ++r) {
        before[r] = at[r + 1];
        at[r + 1] = behind[r];
      }
    }
  }
  if constexpr (wraps && !how.shuffled) {
    for (int r = 0; r < rows; ++r) sums[r][0] += update_wrapped_ends<residual>(u, row + r);
  }
}

template <int width, Blocking how, bool residual, bool wraps>
[[gnu::always_inline]] inline double update_inner_rows(const PoissonUpdate& u) {
  const RowEnds<width> ends(u.extents[1], wraps && how.shuffled ? 0 : 1);
  Doubles<width> sums[how.rows] = {};
  std::int64_t i = 1;
  for (; i + how.rows < u.extents[0]; i += how.rows) update_rows<width, how, residual, wraps>(u, i, ends, sums);
  for (; i + 1 < u.extents[0]; ++i) {
    update_rows<width, Blocking{.rows = 1, .shuffled = how.shuffled}, residual, wraps>(u, i, ends, sums);
  }
  double total = 0;
  for (const Doubles<width>& sum : sums) {
    for (int l = 0; l < width; ++l) total += sum[l];
  }
  return total;
}

template <int width, Blocking how, bool residual>
[[gnu::always_inline]] inline double update_interior(const PoissonUpdate& u) {
  return u.wraps ? update_inner_rows<width, how, residual, true>(u) : update_inner_rows<width, how, residual, false>(u);
}

// Updates a whole row, given its neighbours below and above.
template <int width, bool residual>
[[gnu::always_inline]] inline double update_row(const PoissonUpdate& u, std::int64_t row, const double* below,
                                                const double* above, double left, double right) {
  using Vector = Doubles<width>;
  const std::int64_t columns = u.extents[1];
  const std::int64_t begin = row * u.stride;
  const double* x = u.x + begin;
  if (columns == 1) return update_site<residual>(u, begin, below[0], above[0], left, right);
  double total = update_site<residual>(u, begin, below[0], above[0], left, x[1]);
  std::int64_t j = 1;
  Vector sum = {};
  for (; j + width < columns; j += width) {
    const Vector t =
        simd::load<Vector>(u.b + begin + j) + ((simd::load<Vector>(below + j) + simd::load<Vector>(above + j)) +
                                               (simd::load<Vector>(x + j - 1) + simd::load<Vector>(x + j + 1)));
    simd::store(u.y + begin + j, Vector(t * u.inverse));
    if constexpr (residual) sum += rounded_square<Vector>(u, t, simd::load<Vector>(x + j));
  }
  for (int l = 0; l < width; ++l) total += sum[l];
  for (; j + 1 < columns; ++j) total += update_site<residual>(u, begin + j, below[j], above[j], x[j - 1], x[j + 1]);
  return total + update_site<residual>(u, begin + j, below[j], above[j], x[j - 1], right);
}

// Updates the first and last sites of the rows between, and writes the two faces that consist of such sites.
template <bool residual>
[[gnu::always_inline]] inline double update_ends(const PoissonUpdate& u, const PoissonEdges& edges) {
  const auto [rows, columns] = u.extents;
  const std::int64_t stride = u.stride;
  const double* left = edges.in[2];
  const double* right = edges.in[3];
  const std::int64_t end = columns - 1;
  double total = 0;
  for (std::int64_t i = 1; i + 1 < rows; ++i) {
    const std::int64_t at = i * stride;
    total +=
        update_site<residual>(u, at, u.x[at - stride], u.x[at + stride], left[i], end > 0 ? u.x[at + 1] : right[i]);
  }
  if (end > 0) {
    for (std::int64_t i = 1; i + 1 < rows; ++i) {
      const std::int64_t at = i * stride + end;
      total += update_site<residual>(u, at, u.x[at - stride], u.x[at + stride], u.x[at - 1], right[i]);
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    edges.out[2][i] = u.y[i * stride];
    edges.out[3][i] = u.y[i * stride + end];
  }
  return total;
}

template <int width, bool residual>
[[gnu::always_inline]] inline double update_boundary(const PoissonUpdate& u, const PoissonEdges& edges) {
  const auto [rows, columns] = u.extents;
  const std::int64_t stride = u.stride;
  const double* low = edges.in[0];
  const double* high = edges.in[1];
  const double* left = edges.in[2];
  const double* right = edges.in[3];
  const std::int64_t last = (rows - 1) * stride;
  const std::int64_t end = columns - 1;
  const auto before = [&](std::int64_t row) { return u.wraps ? u.x[row * stride + end] : left[row]; };
  const auto behind = [&](std::int64_t row) { return u.wraps ? u.x[row * stride] : right[row]; };
  double total = update_row<width, residual>(u, 0, low, rows > 1 ? u.x + stride : high, before(0), behind(0));
  if (rows > 1) {
    total += update_row<width, residual>(u, rows - 1, u.x + last - stride, high, before(rows - 1), behind(rows - 1));
  }
  if (!u.wraps) total += update_ends<residual>(u, edges);
  std::memcpy(edges.out[0], u.y, static_cast<std::size_t>(columns) * sizeof(double));
  std::memcpy(edges.out[1], u.y + last, static_cast<std::size_t>(columns) * sizeof(double));
  return total;
}

// The same code for several instruction sets: the target of a function also applies to the code inlined into it.
struct Portable {
  static void interior(const PoissonUpdate& u) { update_interior<2, Blocking{}, false>(u); }
  static double interior_residual(const PoissonUpdate& u) { return update_interior<2, Blocking{}, true>(u); }
  static void boundary(const PoissonUpdate& u, const PoissonEdges& e) { update_boundary<2, false>(u, e); }
  static double boundary_residual(const PoissonUpdate& u, const PoissonEdges& e) {
    return update_boundary<2, true>(u, e);
  }
};

#if defined(__x86_64__)
struct Avx2 {
  [[gnu::target("avx2")]] static void interior(const PoissonUpdate& u) {
    update_interior<4, Blocking{.rows = 3}, false>(u);
  }
  [[gnu::target("avx2")]] static double interior_residual(const PoissonUpdate& u) {
    return update_interior<4, Blocking{.rows = 3}, true>(u);
  }
  [[gnu::target("avx2")]] static void boundary(const PoissonUpdate& u, const PoissonEdges& e) {
    update_boundary<4, false>(u, e);
  }
  [[gnu::target("avx2")]] static double boundary_residual(const PoissonUpdate& u, const PoissonEdges& e) {
    return update_boundary<4, true>(u, e);
  }
};

struct Avx512 {
  [[gnu::target("avx512f")]] static void interior(const PoissonUpdate& u) {
    update_interior<8, Blocking{.rows = 2, .shuffled = true}, false>(u);
  }
  [[gnu::target("avx512f")]] static double interior_residual(const PoissonUpdate& u) {
    return update_interior<8, Blocking{.rows = 2, .shuffled = true}, true>(u);
  }
  [[gnu::target("avx512f")]] static void boundary(const PoissonUpdate& u, const PoissonEdges& e) {
    update_boundary<8, false>(u, e);
  }
  [[gnu::target("avx512f")]] static double boundary_residual(const PoissonUpdate& u, const PoissonEdges& e) {
    return update_boundary<8, true>(u, e);
  }
};
#endif

template <class Kernels>
PoissonKernels table(std::string_view name) {
  return {name, &Kernels::interior, &Kernels::interior_residual, &Kernels::boundary, &Kernels::boundary_residual};
}

std::vector<PoissonKernels> find_kernels() {
  std::vector<PoissonKernels> found{table<Portable>("portable")};
#if defined(__x86_64__)
  if (cpu::levels().back() >= cpu::Level::avx2) found.push_back(table<Avx2>("avx2"));
  if (cpu::levels().back() >= cpu::Level::avx512) found.push_back(table<Avx512>("avx512"));
#endif
  return found;
}

// The time of the fastest of a few updates of a block of 60 x 60 sites, in seconds.
double time_update(const PoissonKernels& kernels) {
  constexpr std::int64_t sites = 60;
  constexpr std::int64_t stride = 64;
  const std::vector<double> x(sites * stride);
  std::vector<double> y(sites * stride);
  const PoissonUpdate update{x.data(), x.data(), y.data(), stride, {sites, sites}};
  double best = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < 20; ++trial) {
    const double begin = base::steady_seconds();
    kernels.interior(update);
    best = std::min(best, base::steady_seconds() - begin);
  }
  return best;
}

}  // namespace

std::span<const PoissonKernels> poisson_kernels() {
  static const std::vector<PoissonKernels> kernels = find_kernels();
  return kernels;
}

// Measured, because wider vectors are not always faster: some processors split them in two steps, and a vector that is
// not aligned lies in two cache lines.
const PoissonKernels& best_poisson_kernels() {
  const cpu::Level level = cpu::level();
  if (cpu::is_level_given()) return poisson_kernels()[static_cast<std::size_t>(level)];
  static const PoissonKernels best = [] {
    const auto all = poisson_kernels();
    std::vector<double> seconds;
    for (const PoissonKernels& kernels : all) seconds.push_back(time_update(kernels));
    return all[static_cast<std::size_t>(std::ranges::min_element(seconds) - seconds.begin())];
  }();
  return best;
}

}  // namespace onehop::poisson::detail
