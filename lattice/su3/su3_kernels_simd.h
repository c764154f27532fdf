// The kernels of su3_kernels.h. Each su3_kernels_*.cc includes this header, for one instruction set.
#include "lattice/support/processor.h"

namespace onehop::lattice::ONEHOP_SIMD_NAMESPACE {
namespace {

template <class T>
inline constexpr int lanes = static_cast<int>(64 / sizeof(T));
template <class T>
using R = Real<T, width<T, lanes<T>>>;
template <class T>
using C = Complex<T, width<T, lanes<T>>>;
template <class T>
struct M {
  C<T> e[3][3];  // row, column
};

template <class T>
ONEHOP_INLINE C<T> load_number(const T* group, int number) {
  constexpr int w = width<T, lanes<T>>;
  return {load<w>(group + number * 2 * lanes<T>), load<w>(group + (number * 2 + 1) * lanes<T>)};
}
template <class T>
ONEHOP_INLINE void store_number(T* group, int number, const C<T>& z) {
  store<width<T, lanes<T>>>(group + number * 2 * lanes<T>, z.re);
  store<width<T, lanes<T>>>(group + (number * 2 + 1) * lanes<T>, z.im);
}
template <class T>
ONEHOP_INLINE M<T> load_matrix(const T* group, int rows = 3) {
  M<T> m{};
#pragma GCC unroll 3
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) m.e[i][j] = load_number(group, 3 * i + j);
  }
  return m;
}
template <class T>
ONEHOP_INLINE void store_matrix(T* group, const M<T>& m, int rows = 3) {
#pragma GCC unroll 3
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) store_number(group, 3 * i + j, m.e[i][j]);
  }
}

// Loops over the parts of a group that fit into one vector register; `at` is the first lane of the part.
#define ONEHOP_EACH_PART(T, at) for (int at = 0; at < lanes<T>; at += width<T, lanes<T>>)

template <class T, bool Adjoint>
void add_products(const T* m, const T* v, const std::int32_t* from, T* r, std::int64_t groups) {
  for (std::int64_t g = 0; g < groups; ++g) {
    const T* vectors = v + (from == nullptr ? g : std::int64_t{from[g]}) * 6 * lanes<T>;
    ONEHOP_EACH_PART(T, at) {
      const T* of_m = m + g * 18 * lanes<T> + at;
      T* of_r = r + g * 6 * lanes<T> + at;
      C<T> x[3];
      C<T> sum[3];
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) {
        x[i] = load_number(vectors + at, i);
        sum[i] = load_number<T>(of_r, i);
      }
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
#pragma GCC unroll 3
        for (int i = 0; i < 3; ++i) {
          // Keep the element in registers: without this the compiler loads it again for its second use.
          C<T> e = load_number(of_m, Adjoint ? 3 * j + i : 3 * i + j);
          ONEHOP_KEEP(e.re.v);
          ONEHOP_KEEP(e.im.v);
          if constexpr (Adjoint) {
            add_conj_product(sum[i], e, x[j]);
          } else {
            add_product(sum[i], e, x[j]);
          }
        }
      }
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) store_number(of_r, i, sum[i]);
    }
  }
}

template <class T, bool AdjointA, bool AdjointB>
void products(const T* a, const T* b, T* r, std::int64_t groups) {
  for (std::int64_t g = 0; g < groups; ++g) {
    ONEHOP_EACH_PART(T, at) {
      const std::int64_t first = g * 18 * lanes<T> + at;
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) {
        C<T> sum[3]{};
#pragma GCC unroll 3
        for (int k = 0; k < 3; ++k) {
          C<T> factor = load_number(a + first, AdjointA ? 3 * k + i : 3 * i + k);
          if constexpr (AdjointA) factor = conj(factor);
#pragma GCC unroll 3
          for (int j = 0; j < 3; ++j) {
            C<T> other = load_number(b + first, AdjointB ? 3 * j + k : 3 * k + j);
            if constexpr (AdjointB) other = conj(other);
            add_product(sum[j], factor, other);
          }
        }
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) store_number(r + first, 3 * i + j, sum[j]);
      }
    }
  }
}

template <class T>
ONEHOP_INLINE M<T> product(const M<T>& a, const M<T>& b) {
  M<T> c{};
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) {
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) add_product(c.e[i][j], a.e[i][k], b.e[k][j]);
    }
  }
  return c;
}

// The largest squared Frobenius norm of the matrices in the lanes.
template <class T>
ONEHOP_INLINE T largest_norm(const M<T>& m) {
  R<T> sum = all<width<T, lanes<T>>>(T{0});
  for (int i = 0; i < 9; ++i) {
    const C<T>& z = m.e[i / 3][i % 3];
    sum = sum + (z.re * z.re + z.im * z.im);
  }
  T numbers[width<T, lanes<T>>];
  __builtin_memcpy(numbers, &sum.v, sizeof numbers);
  T largest = 0;
  for (const T each : numbers) largest = each > largest ? each : largest;
  return largest;
}

// As su3::exponential: the Taylor series of a / 2^k, squared k times. All lanes share the k of the largest matrix,
// because they run in lockstep anyway.
template <class T>
void exponentials(const T* a, T* r, std::int64_t groups) {
  for (std::int64_t g = 0; g < groups; ++g) {
    ONEHOP_EACH_PART(T, at) {
      M<T> m = load_matrix(a + g * 18 * lanes<T> + at);
      int halvings = 0;
      T scale = 1;
      // NOLINTNEXTLINE(bugprone-float-loop-counter): powers of two are exact
      for (T square = largest_norm<T>(m); square > T{0.0625} && halvings < 60; square /= 4, scale /= 2) ++halvings;
      const R<T> fraction = all<width<T, lanes<T>>>(scale);
      for (int i = 0; i < 9; ++i) m.e[i / 3][i % 3] = fraction * m.e[i / 3][i % 3];
      M<T> sum{};
      for (int i = 0; i < 3; ++i) sum.e[i][i].re = sum.e[i][i].re + 1;
      for (int n = 12; n >= 1; --n) {
        sum = product<T>(m, sum);
        const R<T> inverse = all<width<T, lanes<T>>>(T{1} / static_cast<T>(n));
        for (int i = 0; i < 9; ++i) sum.e[i / 3][i % 3] = inverse * sum.e[i / 3][i % 3];
        for (int i = 0; i < 3; ++i) sum.e[i][i].re = sum.e[i][i].re + 1;
      }
      for (; halvings > 0; --halvings) sum = product<T>(sum, sum);
      store_matrix(r + g * 18 * lanes<T> + at, sum);
    }
  }
}

template <class T>
ONEHOP_INLINE void normalise(C<T> (&row)[3]) {
  R<T> square = all<width<T, lanes<T>>>(T{0});
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) square = square + (row[j].re * row[j].re + row[j].im * row[j].im);
  constexpr int w = width<T, lanes<T>>;
  T numbers[w];
  __builtin_memcpy(numbers, &square.v, sizeof numbers);
  for (int i = 0; i < w; ++i) {
    if constexpr (sizeof(T) == 4) {
      numbers[i] = 1 / __builtin_sqrtf(numbers[i]);
    } else {
      numbers[i] = 1 / __builtin_sqrt(numbers[i]);
    }
  }
  const R<T> scale = load<w>(&numbers[0]);
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) row[j] = scale * row[j];
}

template <class T>
ONEHOP_INLINE void third_row(M<T>& m) {
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    const int k = (j + 1) % 3;
    const int l = (j + 2) % 3;
    C<T> z{};
    add_product(z, m.e[0][k], m.e[1][l]);
    subtract_product(z, m.e[0][l], m.e[1][k]);
    m.e[2][j] = conj(z);
  }
}

template <class T>
void reunitarise(const T* a, T* r, std::int64_t groups) {
  for (std::int64_t g = 0; g < groups; ++g) {
    ONEHOP_EACH_PART(T, at) {
      M<T> m = load_matrix(a + g * 18 * lanes<T> + at, 2);
      normalise<T>(m.e[0]);
      C<T> along{};
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) add_conj_product(along, m.e[0][j], m.e[1][j]);
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) subtract_product(m.e[1][j], along, m.e[0][j]);
      normalise<T>(m.e[1]);
      third_row<T>(m);
      store_matrix(r + g * 18 * lanes<T> + at, m);
    }
  }
}

template <class T>
void compress(const T* a, T* r, std::int64_t groups) {
  for (std::int64_t g = 0; g < groups; ++g) {
    ONEHOP_EACH_PART(T, at) store_matrix(r + g * 12 * lanes<T> + at, load_matrix(a + g * 18 * lanes<T> + at, 2), 2);
  }
}

template <class T>
void expand(const T* a, T* r, std::int64_t groups) {
  for (std::int64_t g = 0; g < groups; ++g) {
    ONEHOP_EACH_PART(T, at) {
      M<T> m = load_matrix(a + g * 12 * lanes<T> + at, 2);
      third_row<T>(m);
      store_matrix(r + g * 18 * lanes<T> + at, m);
    }
  }
}

template <class T>
void arithmetic(std::int64_t groups) {
  constexpr int w = width<T, lanes<T>>;
  constexpr int independent = 12;  // chains, enough to hide the latency of multiply-adds on two units
  R<T> sum[independent];
#pragma GCC unroll 12
  for (int i = 0; i < independent; ++i) sum[i] = all<w>(static_cast<T>(i));
  const R<T> factor = all<w>(T{0.5});
  const R<T> other = all<w>(T{0.25});
  for (std::int64_t part = 0; part < groups * (lanes<T> / w); ++part) {
    for (int round = 0; round < 36 / independent; ++round) {
#pragma GCC unroll 12
      for (int i = 0; i < independent; ++i) {
        sum[i] = sum[i] * factor + other;
        ONEHOP_KEEP(sum[i].v);
      }
    }
  }
}

template <class T>
void movement(const T* m, const T* v, const std::int32_t*, T* r, std::int64_t groups) {
  constexpr int w = width<T, lanes<T>>;
  for (std::int64_t g = 0; g < groups; ++g) {
    ONEHOP_EACH_PART(T, at) {
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        T* to = r + (g * 6 + i) * lanes<T> + at;
        R<T> sum = load<w>(static_cast<const T*>(to)) + load<w>(v + (g * 6 + i) * lanes<T> + at);
#pragma GCC unroll 3
        // NOLINTNEXTLINE(bugprone-implicit-widening-of-multiplication-result): below 18
        for (int k = 0; k < 3; ++k) sum = sum + load<w>(m + (g * 18 + 6 * k + i) * lanes<T> + at);
        store<w>(to, sum);
      }
    }
  }
}

template <class T>
const Su3Kernels<T>& kernel_set() {
  static constexpr Su3Kernels<T> set{
      {&add_products<T, false>, &add_products<T, true>},
      {{&products<T, false, false>, &products<T, false, true>}, {&products<T, true, false>, &products<T, true, true>}},
      &exponentials<T>,
      &reunitarise<T>,
      &compress<T>,
      &expand<T>,
      &arithmetic<T>,
      &movement<T>};
  return set;
}

}  // namespace

// Each processor's source includes this header once, in a namespace of its own.
// NOLINTBEGIN(misc-definitions-in-headers)
const Su3Kernels<float>& float_su3() { return kernel_set<float>(); }
const Su3Kernels<double>& double_su3() { return kernel_set<double>(); }
// NOLINTEND(misc-definitions-in-headers)

}  // namespace onehop::lattice::ONEHOP_SIMD_NAMESPACE
