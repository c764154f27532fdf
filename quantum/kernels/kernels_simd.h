// The kernels of kernels.h. Each kernels_*.cc includes this header, for one instruction set.
#include "src/base/simd_target.h"

namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE {
namespace {

template <typename T>
inline constexpr int lanes = static_cast<int>(ONEHOP_SIMD_BYTES / sizeof(T));
template <typename T>
inline constexpr int lane_bits = lanes<T> == 2   ? 1
                                 : lanes<T> == 4 ? 2
                                 : lanes<T> == 8 ? 3
                                                 : 4;

template <typename T>
using Vector = simd::Vector<T, lanes<T>>;

#define ONEHOP_INLINE_LAMBDA __attribute__((always_inline))

template <typename T>
ONEHOP_INLINE Vector<T> load(const T* p) {
  return simd::load<Vector<T>>(p);
}
template <typename T>
ONEHOP_INLINE Vector<T> load_once(const T* p) {
  return simd::load_once<Vector<T>>(p);
}
template <typename T>
ONEHOP_INLINE Vector<T> all(T x) {
  return simd::all<Vector<T>>(x);
}
using simd::finish_streaming;
using simd::store;
using simd::stream;

template <int... I>
struct Numbers {};
template <int N, int... I>
struct CountTo : CountTo<N - 1, N - 1, I...> {};
template <int... I>
struct CountTo<0, I...> {
  using Type = Numbers<I...>;
};
template <typename T>
using LaneNumbers = typename CountTo<lanes<T>>::Type;

// Lane l of the result is lane l ^ X.
template <int X, typename V, int... I>
ONEHOP_INLINE V exchange(V v, Numbers<I...>) {
  return __builtin_shufflevector(v, v, (I ^ X)...);
}
template <typename V, int... I>
ONEHOP_INLINE V even_lanes(V a, V b, Numbers<I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...);
}
template <typename V, int... I>
ONEHOP_INLINE V odd_lanes(V a, V b, Numbers<I...>) {
  return __builtin_shufflevector(a, b, (2 * I + 1)...);
}
// Interleaves the lower (Half 0) or upper (Half 1) halves of a and b.
template <int Half, typename V, int... I>
ONEHOP_INLINE V mixed_halves(V a, V b, Numbers<I...>) {
  constexpr int n = sizeof...(I);
  return __builtin_shufflevector(a, b, (I / 2 + Half * n / 2 + (I % 2) * n)...);
}

// Calls body<N>() for the N of 0, Step, 2 Step, ... below Limit that `number` is.
template <int Limit, int Step = 1, int N = 0, typename Body>
ONEHOP_INLINE auto with_number(std::size_t number, const Body& body) {
  if constexpr (N + Step < Limit) {
    if (number != N) return with_number<Limit, Step, N + Step>(number, body);
  }
  return body.template operator()<N>();
}

// --- Gather and scatter ---

// The hardware prefetcher starts anew in each row, because rows are apart in memory. So later rows are prefetched here.
template <typename T>
void gather(const std::complex<T>* amplitudes, const std::uint64_t* offsets, const TileShape& shape, T* tile,
            std::size_t following) {
  const std::size_t rows = shape.rows();
  const std::size_t numbers = std::size_t{2} << shape.row_bits;
  constexpr std::size_t line = 64 / sizeof(T);
  const std::size_t ahead = numbers * sizeof(T) >= 2048 ? 1 : 2048 / (numbers * sizeof(T));
  const std::size_t known = rows + following;
  for (std::size_t r = 0; r < rows; ++r) {
    const T* from = reinterpret_cast<const T*>(amplitudes + offsets[r]);
    const T* next = reinterpret_cast<const T*>(amplitudes + offsets[r + ahead < known ? r + ahead : known - 1]);
    T* to = tile + r * shape.row_stride();
    for (std::size_t i = 0; i < numbers; i += 2 * lanes<T>) {
      for (std::size_t k = 0; k < 2 * lanes<T>; k += line) __builtin_prefetch(next + i + k);
      const Vector<T> a = load(from + i);
      const Vector<T> b = load(from + i + lanes<T>);
      store(to + i, even_lanes(a, b, LaneNumbers<T>()));
      store(to + i + lanes<T>, odd_lanes(a, b, LaneNumbers<T>()));
    }
  }
}

// Stores vectors of real and imaginary parts as interleaved complex numbers.
template <bool Stream, typename T>
ONEHOP_INLINE void put(T* to, Vector<T> re, Vector<T> im) {
  if constexpr (Stream) {
    stream(to, mixed_halves<0>(re, im, LaneNumbers<T>()));
    stream(to + lanes<T>, mixed_halves<1>(re, im, LaneNumbers<T>()));
  } else {
    store(to, mixed_halves<0>(re, im, LaneNumbers<T>()));
    store(to + lanes<T>, mixed_halves<1>(re, im, LaneNumbers<T>()));
  }
}

template <typename T>
ONEHOP_INLINE bool can_stream(const std::complex<T>* amplitudes) {
  return reinterpret_cast<std::uintptr_t>(amplitudes) % ONEHOP_SIMD_BYTES == 0;
}

template <bool Stream, typename T>
ONEHOP_INLINE void scatter_with(std::complex<T>* amplitudes, const std::uint64_t* offsets, const TileShape& shape,
                                const T* tile, T scale) {
  const std::size_t rows = shape.rows();
  const std::size_t numbers = std::size_t{2} << shape.row_bits;
  const Vector<T> factor = all<T>(scale);
  for (std::size_t r = 0; r < rows; ++r) {
    T* to = reinterpret_cast<T*>(amplitudes + offsets[r]);
    const T* from = tile + r * shape.row_stride();
    for (std::size_t i = 0; i < numbers; i += 2 * lanes<T>) {
      put<Stream>(to + i, load(from + i) * factor, load(from + i + lanes<T>) * factor);
    }
  }
}

template <typename T>
void scatter(std::complex<T>* amplitudes, const std::uint64_t* offsets, const TileShape& shape, const T* tile, T scale,
             bool past_caches) {
  if (past_caches && can_stream(amplitudes)) {
    scatter_with<true>(amplitudes, offsets, shape, tile, scale);
    finish_streaming();
  } else {
    scatter_with<false>(amplitudes, offsets, shape, tile, scale);
  }
}

}  // namespace
}  // namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE

#include "quantum/kernels/kernels_simd_butterflies.h"
#include "quantum/kernels/kernels_simd_matrices.h"
#include "quantum/kernels/kernels_simd_permutation.h"
#include "quantum/kernels/kernels_simd_probe.h"

namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE {
namespace {

// --- Diagonals ---

template <typename T>
ONEHOP_INLINE void multiply_vectors(T* at, Vector<T> w_re, Vector<T> w_im) {
  const Vector<T> re = load(at);
  const Vector<T> im = load(at + lanes<T>);
  store(at, w_re * re - w_im * im);
  store(at + lanes<T>, w_re * im + w_im * re);
}

template <typename T>
void multiply(T* row, const T* table, std::complex<T> factor, std::size_t vectors) {
  const T* const parts = reinterpret_cast<const T*>(&factor);
  const Vector<T> f_re = all<T>(parts[0]);
  const Vector<T> f_im = all<T>(parts[1]);
  const bool one = parts[0] == 1 && parts[1] == 0;
  for (std::size_t i = 0; i < vectors; ++i, row += 2 * lanes<T>, table += 2 * lanes<T>) {
    Vector<T> w_re = load(table);
    Vector<T> w_im = load(table + lanes<T>);
    if (!one) {
      const Vector<T> t = w_re;
      w_re = f_re * t - f_im * w_im;
      w_im = f_re * w_im + f_im * t;
    }
    multiply_vectors(row, w_re, w_im);
  }
}

template <bool Probe, typename T>
ONEHOP_INLINE double multiply_two(T* ket, T* bra, const T* table, std::complex<T> factor, std::size_t vectors,
                                  T* columns) {
  const T* const parts = reinterpret_cast<const T*>(&factor);
  const Vector<T> f_re = all<T>(parts[0]);
  const Vector<T> f_im = all<T>(parts[1]);
  Vector<T> total = {};
  for (std::size_t v = 0; v < vectors; ++v) {
    const std::size_t i = v * 2 * lanes<T>;
    const Vector<T> t_re = load(table + i);
    const Vector<T> t_im = load(table + i + lanes<T>);
    const Vector<T> w_re = f_re * t_re - f_im * t_im;
    const Vector<T> w_im = f_re * t_im + f_im * t_re;
    if constexpr (Probe) total = total + add_row_product(ket + i, bra + i, columns + v * lanes<T>);
    multiply_vectors(ket + i, w_re, w_im);
    multiply_vectors(bra + i, w_re, w_im);
  }
  return Probe ? lane_sum<T>(total) : 0;
}

template <typename T>
void multiply_both(T* ket, T* bra, const T* table, std::complex<T> factor, std::size_t vectors) {
  multiply_two<false>(ket, bra, table, factor, vectors, static_cast<T*>(nullptr));
}

template <typename T>
double probe_and_multiply(T* ket, T* bra, const T* table, std::complex<T> factor, std::size_t vectors, T* columns) {
  return multiply_two<true>(ket, bra, table, factor, vectors, columns);
}

template <typename T>
void scale(T* row, std::complex<T> factor, std::size_t vectors) {
  const T* const parts = reinterpret_cast<const T*>(&factor);
  const Vector<T> f_re = all<T>(parts[0]);
  const Vector<T> f_im = all<T>(parts[1]);
  for (std::size_t i = 0; i < vectors; ++i, row += 2 * lanes<T>) {
    const Vector<T> re = load(row);
    const Vector<T> im = load(row + lanes<T>);
    store(row, f_re * re - f_im * im);
    store(row + lanes<T>, f_re * im + f_im * re);
  }
}

// --- Sums ---

// Loads a vector of doubles, converting from single precision if needed.
ONEHOP_INLINE Vector<double> load_doubles(const double* p) { return load(p); }
ONEHOP_INLINE Vector<double> load_doubles(const float* p) {
  return simd::convert<Vector<double>>(simd::load<simd::Vector<float, lanes<double>>>(p));
}

// X: the mask of exchanged lanes that the lowest bits of x give; a vector holds pairs of real and imaginary parts.
template <typename T, int X>
std::complex<double> signed_product_of(const std::complex<T>* left, const std::complex<T>* right, std::size_t count,
                                       std::size_t x, std::size_t z) {
  constexpr std::size_t together = lanes<double> / 2;
  const T* const l = reinterpret_cast<const T*>(left);
  const T* const r = reinterpret_cast<const T*>(right);
  const std::size_t far = x & ~(together - 1);
  Vector<double> same[2] = {};     // re re, im im; two accumulators of each hide the latency of the additions
  Vector<double> crossed[2] = {};  // re im, im re
  for (std::size_t j = 0; j < count; j += 2 * together) {
#pragma GCC unroll 2
    for (std::size_t k = 0; k < 2; ++k) {
      const std::size_t at = j + k * together;
      const double sign = (__builtin_popcountll(at & z) & 1) != 0 ? -1.0 : 1.0;
      Vector<double> a = load_doubles(l + 2 * (at ^ far));
      if constexpr (X != 0) a = exchange<X>(a, LaneNumbers<double>());
      const Vector<double> b = load_doubles(r + 2 * at) * sign;
      same[k] = same[k] + a * b;
      crossed[k] = crossed[k] + a * exchange<1>(b, LaneNumbers<double>());
    }
  }
  same[0] = same[0] + same[1];
  crossed[0] = crossed[0] + crossed[1];
  double re = 0;
  double im = 0;
  for (std::size_t k = 0; k < together; ++k) {
    const double sign = (__builtin_popcountll(k & z) & 1) != 0 ? -1 : 1;
    const int i = static_cast<int>(2 * k);
    re += sign * (same[0][i] + same[0][i + 1]);
    im += sign * (crossed[0][i] - crossed[0][i + 1]);
  }
  return {re, im};
}

template <typename T>
std::complex<double> signed_product(const std::complex<T>* left, const std::complex<T>* right, std::size_t count,
                                    std::size_t x, std::size_t z) {
  return with_number<lanes<double>, 2>(2 * (x & (lanes<double> / 2 - 1)),
                                       [&]<int X>() { return signed_product_of<T, X>(left, right, count, x, z); });
}

template <typename T>
const Kernels<T>& kernel_set() {
  static constexpr Kernels<T> kernels = {lane_bits<T>,
                                         ONEHOP_PREFER_DENSE,
                                         gather<T>,
                                         scatter<T>,
                                         scatter_permuted<T>,
                                         butterflies<T>,
                                         lane_butterflies<T>,
                                         pair<T>,
                                         two_pairs<T>,
                                         dense<T>,
                                         permute<T>,
                                         lane_matrix<T>,
                                         multiply<T>,
                                         scale<T>,
                                         multiply_both<T>,
                                         probe_and_multiply<T>,
                                         probe_row<T>,
                                         probe_vectors<T>,
                                         probe_lanes<T>,
                                         probe_pairs<T>,
                                         max_probed_turns,
                                         probed_butterflies<T>,
                                         probed_lane_butterflies<T>,
                                         signed_product<T>,
                                         signed_add<T>};
  return kernels;
}

#undef ONEHOP_INLINE_LAMBDA

}  // namespace

// Each processor's source includes this header once, in a namespace of its own.
// NOLINTBEGIN(misc-definitions-in-headers)
const Kernels<float>& float_kernels() { return kernel_set<float>(); }
const Kernels<double>& double_kernels() { return kernel_set<double>(); }
// NOLINTEND(misc-definitions-in-headers)

}  // namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE
