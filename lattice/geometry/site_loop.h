// Loops over the sites of matrix fields (matrix_field.h), several sites at once in SIMD vectors. An operation is a
// generic function of `sites`; it is compiled for several instruction sets, each with vectors that fill a register, and
// each_site() picks the best one at run time. All give the same bits, because multiplications and additions are not
// fused and lanes are independent.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "lattice/geometry/matrix_field.h"
#include "onehop/lattice/su3.h"
#include "src/base/cpu.h"
#include "src/base/simd.h"

namespace onehop::lattice::detail {

// `Lanes` consecutive sites of a row.
template <int Lanes, class Number = double>
struct Sites {
  using Real = simd::Lanes<Number, Lanes>;
  using Matrix = su3::Matrix<Real>;
  using Double = simd::Lanes<double, Lanes>;
  static constexpr int lanes = Lanes;

  std::ptrdiff_t at;     // offset in a field of the first number of the first site
  std::ptrdiff_t step;   // offset between the numbers of a site
  std::ptrdiff_t order;  // lexicographic number of the first site in the block

  // These functions copy bytes themselves, because simd::load and simd::store make the loops of g++ 12 for AVX2 up to a
  // fifth longer.

  // Loads the matrices of these sites, or of those at the offset `shift`, a sum of strides of the space.
  [[nodiscard]] Matrix load(const Number* field, std::ptrdiff_t shift = 0) const {
    Matrix m;
    const Number* from = field + at + shift;
    for (int i = 0; i < 9; ++i, from += 2 * step) {
      std::memcpy(&m.e[i / 3][i % 3].re, from, sizeof(Real));
      std::memcpy(&m.e[i / 3][i % 3].im, from + step, sizeof(Real));
    }
    return m;
  }
  void store(Number* field, const Matrix& m) const {
    Number* to = field + at;
    for (int i = 0; i < 9; ++i, to += 2 * step) {
      std::memcpy(to, &m.e[i / 3][i % 3].re, sizeof(Real));
      std::memcpy(to + step, &m.e[i / 3][i % 3].im, sizeof(Real));
    }
  }
  // Store and load one real number per site, in lexicographic order.
  void store_real(double* values, const Double& value) const { std::memcpy(values + order, &value, sizeof value); }
  [[nodiscard]] Double load_real(const double* values) const {
    Double value;
    std::memcpy(&value, values + order, sizeof value);
    return value;
  }
  [[nodiscard]] static Real all(double x) { return Real{} + static_cast<Number>(x); }
};

// Converts the numbers of matrices to another precision; To has as many lanes as From.
template <class To, class From>
inline su3::Matrix<To> converted(const su3::Matrix<From>& a) {
  const auto convert = [](const From& x) {
    if constexpr (std::is_same_v<To, From>) {
      return x;
    } else if constexpr (std::is_arithmetic_v<From>) {
      return static_cast<To>(x);
    } else {
      return __builtin_convertvector(x, To);
    }
  };
  su3::Matrix<To> m;
  for (int i = 0; i < 9; ++i) m.e[i / 3][i % 3] = {convert(a.e[i / 3][i % 3].re), convert(a.e[i / 3][i % 3].im)};
  return m;
}

// Applies the function to each lane.
template <class Real, class Function>
inline Real each_lane(const Real& x, Function&& function) {
  if constexpr (std::is_same_v<Real, double>) {
    return function(x);
  } else {
    Real y{};
    for (std::size_t lane = 0; lane < sizeof(Real) / sizeof(double); ++lane) y[lane] = function(x[lane]);
    return y;
  }
}

template <class Real>
inline Real square_root(const Real& x) {
  return each_lane(x, [](double one) { return __builtin_sqrt(one); });
}

// Prefetches into L2. Loads alone do not saturate the memory, because L1 allows only a few outstanding misses. x86-64
// uses inline assembly, because g++ treats an inlined function that only calls __builtin_prefetch as one without side
// effects and drops it.
[[gnu::always_inline]] inline void prefetch_bytes(const void* from, std::size_t bytes) {
  const auto* line = static_cast<const char*>(from);
  for (const char* end = line + bytes; line < end; line += 64) {
#if defined(__x86_64__)
    asm volatile("prefetcht1 %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 0, 2);
#endif
  }
}

// The rows that an operation reads. The loop prefetches the next row of each while it works on the current one.
template <class Number>
class RowsAhead {
 public:
  explicit RowsAhead(const MatrixSpace& space)
      : bytes_(18 * static_cast<std::size_t>(space.number_step()) * sizeof(Number)) {}

  // Adds the rows of a field at the offset `shift`. Ignores rows that were added before; a shift of one site along a
  // row counts as the same.
  void add(const Number* field, std::ptrdiff_t shift = 0) {
    const Number* row = field + shift;
    for (int i = 0; i < count_; ++i) {
      const std::ptrdiff_t apart = row - rows_[static_cast<std::size_t>(i)];
      if (-2 < apart && apart < 2) return;
    }
    if (count_ < max_rows) rows_[static_cast<std::size_t>(count_++)] = row;
  }
  void prefetch(std::ptrdiff_t at) const {
    for (int i = 0; i < count_; ++i) prefetch_bytes(rows_[static_cast<std::size_t>(i)] + at, bytes_);
  }

 private:
  static constexpr int max_rows = 48;
  std::size_t bytes_;
  int count_ = 0;
  std::array<const Number*, max_rows> rows_{};
};

// The rows that sum_of_staples() reads.
inline RowsAhead<double> staples_ahead(const MatrixSpace& space, const std::array<const double*, 4>& links, int dims,
                                       int mu) {
  RowsAhead<double> rows(space);
  rows.add(links[static_cast<std::size_t>(mu)]);
  const std::ptrdiff_t ahead = space.stride(mu);
  for (int nu = 0; nu < dims; ++nu) {
    if (nu == mu) continue;
    const std::ptrdiff_t up = space.stride(nu);
    for (const std::ptrdiff_t shift : {std::ptrdiff_t{0}, ahead, -up, ahead - up})
      rows.add(links[static_cast<std::size_t>(nu)], shift);
    for (const std::ptrdiff_t shift : {up, -up}) rows.add(links[static_cast<std::size_t>(mu)], shift);
  }
  return rows;
}

// An operation together with the rows that it reads.
template <class Op, class Number>
struct Prefetching {
  Op op;
  RowsAhead<Number> rows;

  template <class Sites>
  void operator()(const Sites& sites) const {
    op(sites);
  }
  void prefetch(std::ptrdiff_t row) const { rows.prefetch(row); }
};
template <class Op, class Number>
Prefetching(Op, RowsAhead<Number>) -> Prefetching<Op, Number>;

// All own sites of fields of this number type, for each_site().
template <class Number>
struct FieldsOf {
  const MatrixSpace* all;

  [[nodiscard]] const base::ThreadPool& pool() const noexcept { return all->pool(); }
  [[nodiscard]] std::size_t sites() const noexcept { return all->sites(); }
  [[nodiscard]] std::span<const std::ptrdiff_t> rows() const noexcept { return all->rows(); }
};

// The number of sites of a vector that fills a register of this many bytes, at most 8. Longer vectors take about twice
// as long to compile.
template <class Number, int RegisterBytes>
inline constexpr int full_lanes = std::min(8, RegisterBytes / static_cast<int>(sizeof(Number)));

template <int RegisterBytes, class Number, class Op>
inline void loop_over_rows(const FieldsOf<Number>& space, std::ptrdiff_t first, std::ptrdiff_t last, const Op& op) {
  constexpr int lanes = full_lanes<Number, RegisterBytes>;
  const std::ptrdiff_t step = space.all->number_step();
  const std::ptrdiff_t count = space.all->row_sites();
  const std::ptrdiff_t* rows = space.rows().data();
  for (std::ptrdiff_t row = first; row < last; ++row) {
    std::ptrdiff_t at = rows[row];
    std::ptrdiff_t order = row * count;
    std::ptrdiff_t left = count;
    if constexpr (requires { op.prefetch(at); }) {
      if (row + 1 < last) op.prefetch(rows[row + 1]);
    }
    for (; left >= lanes; left -= lanes, at += lanes, order += lanes) op(Sites<lanes, Number>{at, step, order});
    if constexpr (lanes > 4) {
      if (left >= 4) {
        op(Sites<4, Number>{at, step, order});
        left -= 4, at += 4, order += 4;
      }
    }
    for (; left > 0; --left, ++at, ++order) op(Sites<1, Number>{at, step, order});
  }
}
template <int RegisterBytes, class Op>
inline void loop_over_rows(const MatrixSpace& space, std::ptrdiff_t first, std::ptrdiff_t last, const Op& op) {
  loop_over_rows<RegisterBytes>(FieldsOf<double>{&space}, first, last, op);
}

template <class Space, class Op>
[[gnu::flatten]] void loop_portable(const Space& space, std::ptrdiff_t first, std::ptrdiff_t last, const Op& op) {
  loop_over_rows<16>(space, first, last, op);
}

#if defined(__x86_64__)
template <class Space, class Op>
[[gnu::flatten, gnu::target("avx2,fma")]] void loop_avx2(const Space& space, std::ptrdiff_t first, std::ptrdiff_t last,
                                                         const Op& op) {
  loop_over_rows<32>(space, first, last, op);
}
template <class Space, class Op>
[[gnu::flatten, gnu::target("avx512f,avx512dq,avx512vl,fma")]] void loop_avx512(const Space& space,
                                                                                std::ptrdiff_t first,
                                                                                std::ptrdiff_t last, const Op& op) {
  loop_over_rows<64>(space, first, last, op);
}
#endif

// Calls op(sites) for all own sites, on all threads of the space: a MatrixSpace (for fields of doubles), FieldsOf, or
// another type with pool(), sites(), rows() and an overload of loop_over_rows<RegisterBytes>().
template <class Space, class Op>
void each_site(const Space& space, const Op& op) {
  const auto rows = static_cast<std::ptrdiff_t>(space.rows().size());
  const auto run = [&](std::ptrdiff_t first, std::ptrdiff_t last) {
#if defined(__x86_64__)
    if (cpu::level() == cpu::Level::avx512) return loop_avx512(space, first, last, op);
    if (cpu::level() == cpu::Level::avx2) return loop_avx2(space, first, last, op);
#endif
    loop_portable(space, first, last, op);
  };
  if (space.pool().size() == 1 || space.sites() < 512) return run(0, rows);
  space.pool().run([&](int thread) {
    const auto [first, last] = space.pool().part(0, rows, thread);
    run(first, last);
  });
}

}  // namespace onehop::lattice::detail
