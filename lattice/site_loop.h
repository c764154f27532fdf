// Loops over the sites of fields of matrices (matrix_field.h), as many sites at once as the processor's vectors hold. An operation is a
// generic function of `sites`; it is compiled for vectors of 8, 4 and 1 sites and for several kinds of processor, one of which is
// chosen at run time. All give the same bits: nothing here is contracted, and no lane knows of another.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "matrix_field.h"
#include "onehop/lattice/su3.h"
#include "target.h"

namespace onehop::lattice::detail {

template <int Lanes>
struct RealOf {
  typedef double Type __attribute__((vector_size(Lanes * sizeof(double))));
};
template <>
struct RealOf<1> {
  using Type = double;
};

// So many sites of a row, one beside the other.
template <int Lanes>
struct Sites {
  using Real = typename RealOf<Lanes>::Type;
  using Matrix = su3::Matrix<Real>;
  static constexpr int lanes = Lanes;

  std::ptrdiff_t at;     // of the first one's first number in a field
  std::ptrdiff_t step;   // between the numbers of a site
  std::ptrdiff_t order;  // the lexicographic number of the first one in the block

  // `shift`: how far away in the field the matrices lie that are wanted: strides of the space, added up.
  [[nodiscard]] Matrix load(const double* field, std::ptrdiff_t shift = 0) const {
    Matrix m;
    const double* from = field + at + shift;
    for (int i = 0; i < 9; ++i, from += 2 * step) {
      std::memcpy(&m.e[i / 3][i % 3].re, from, sizeof(Real));
      std::memcpy(&m.e[i / 3][i % 3].im, from + step, sizeof(Real));
    }
    return m;
  }
  void store(double* field, const Matrix& m) const {
    double* to = field + at;
    for (int i = 0; i < 9; ++i, to += 2 * step) {
      std::memcpy(to, &m.e[i / 3][i % 3].re, sizeof(Real));
      std::memcpy(to + step, &m.e[i / 3][i % 3].im, sizeof(Real));
    }
  }
  // One real number a site, in lexicographic order.
  void store_real(double* values, const Real& value) const { std::memcpy(values + order, &value, sizeof value); }
  [[nodiscard]] Real load_real(const double* values) const {
    Real value;
    std::memcpy(&value, values + order, sizeof value);
    return value;
  }
  [[nodiscard]] static Real all(double x) { return Real{} + x; }
};

// function(number) for each lane's number.
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

// Asks for so many doubles, into the second cache. Loads by themselves wait for memory with as many lines at once as the first cache may miss,
// which are few. (Not __builtin_prefetch everywhere: an inlined function with nothing but that counts as one without effect for g++, which leaves it out.)
[[gnu::always_inline]] inline void ask_for_doubles(const double* from, std::ptrdiff_t count) {
  for (std::ptrdiff_t i = 0; i < count; i += 64 / static_cast<std::ptrdiff_t>(sizeof(double))) {
#if defined(__x86_64__)
    asm volatile("prefetcht1 %0" : : "m"(from[i]));
#else
    __builtin_prefetch(from + i, 0, 2);
#endif
  }
}

// The rows that an operation reads: of each the next one is asked for while one is worked on.
class RowsAhead {
 public:
  explicit RowsAhead(const MatrixSpace& space) : length_(18 * space.number_step()) {}

  // Rows of a field so far away. A step along a row stays in it.
  void add(const double* field, std::ptrdiff_t shift = 0) {
    const double* row = field + shift;
    for (int i = 0; i < count_; ++i) {
      const std::ptrdiff_t apart = row - rows_[static_cast<std::size_t>(i)];
      if (-2 < apart && apart < 2) return;
    }
    if (count_ < most) rows_[static_cast<std::size_t>(count_++)] = row;
  }
  void ask_for(std::ptrdiff_t at) const {
    for (int i = 0; i < count_; ++i) ask_for_doubles(rows_[static_cast<std::size_t>(i)] + at, length_);
  }

 private:
  static constexpr int most = 48;
  std::ptrdiff_t length_;
  int count_ = 0;
  std::array<const double*, most> rows_{};
};

// An operation with the rows that it reads.
template <class Op>
struct Asking {
  Op op;
  RowsAhead rows;

  template <class Sites>
  void operator()(const Sites& sites) const {
    op(sites);
  }
  void ask_for(std::ptrdiff_t row) const { rows.ask_for(row); }
};

template <class Op>
inline void loop_over_rows(const MatrixSpace& space, std::ptrdiff_t first, std::ptrdiff_t last, const Op& op) {
  const std::ptrdiff_t step = space.number_step();
  const std::ptrdiff_t count = space.row_sites();
  const std::ptrdiff_t* rows = space.rows().data();
  for (std::ptrdiff_t row = first; row < last; ++row) {
    std::ptrdiff_t at = rows[row];
    std::ptrdiff_t order = row * count;
    std::ptrdiff_t left = count;
    if constexpr (requires { op.ask_for(at); }) {
      if (row + 1 < last) op.ask_for(rows[row + 1]);
    }
    for (; left >= 8; left -= 8, at += 8, order += 8) op(Sites<8>{at, step, order});
    if (left >= 4) {
      op(Sites<4>{at, step, order});
      left -= 4, at += 4, order += 4;
    }
    for (; left > 0; --left, ++at, ++order) op(Sites<1>{at, step, order});
  }
}

template <class Space, class Op>
[[gnu::flatten]] void loop_portable(const Space& space, std::ptrdiff_t first, std::ptrdiff_t last, const Op& op) {
  loop_over_rows(space, first, last, op);
}

#if defined(__x86_64__)
template <class Space, class Op>
[[gnu::flatten, gnu::target("avx2,fma")]] void loop_avx2(const Space& space, std::ptrdiff_t first, std::ptrdiff_t last,
                                                         const Op& op) {
  loop_over_rows(space, first, last, op);
}
template <class Space, class Op>
[[gnu::flatten, gnu::target("avx512f,avx512dq,avx512vl,fma")]] void loop_avx512(const Space& space,
                                                                                std::ptrdiff_t first,
                                                                                std::ptrdiff_t last, const Op& op) {
  loop_over_rows(space, first, last, op);
}
#endif

// op(sites) for all own sites, by all threads of the space, which is a MatrixSpace or something else with rows (coloured_rows.h).
template <class Space, class Op>
void each_site(const Space& space, const Op& op) {
  const auto rows = static_cast<std::ptrdiff_t>(space.rows().size());
  const auto run = [&](std::ptrdiff_t first, std::ptrdiff_t last) {
#if defined(__x86_64__)
    if (target() == Target::avx512) return loop_avx512(space, first, last, op);
    if (target() == Target::avx2) return loop_avx2(space, first, last, op);
#endif
    loop_portable(space, first, last, op);
  };
  if (space.team().size() == 1 || space.sites() < 512) return run(0, rows);
  space.team().run([&](int thread) {
    const auto [first, last] = space.team().part(0, rows, thread);
    run(first, last);
  });
}

}  // namespace onehop::lattice::detail
