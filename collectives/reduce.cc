#include "collectives/reduce.h"

#include <array>
#include <cstdint>
#include <type_traits>

#include "src/base/cpu.h"
#include "src/base/simd.h"

namespace onehop::collectives::detail {

namespace {

using simd::load;
using simd::Vector;

// The format of elements in memory and the type in which they are reduced.
template <class T>
struct Number {
  using Value = T;
  static constexpr std::size_t bytes = sizeof(T);
  template <int lanes>
  [[gnu::always_inline]] static inline Vector<T, lanes> read(const std::byte* from) {
    return load<Vector<T, lanes>>(from);
  }
  template <int lanes>
  [[gnu::always_inline]] static inline void write(std::byte* to, Vector<T, lanes> value) {
    simd::store(to, value);
  }
};

struct BrainNumber {
  using Value = float;
  static constexpr std::size_t bytes = 2;
  template <int lanes>
  [[gnu::always_inline]] static inline Vector<float, lanes> read(const std::byte* from) {
    const auto bits = __builtin_convertvector((load<Vector<std::uint16_t, lanes>>(from)), Vector<std::uint32_t, lanes>);
    return Vector<float, lanes>(bits << 16);
  }
  template <int lanes>
  [[gnu::always_inline]] static inline void write(std::byte* to, Vector<float, lanes> value) {
    using Bits = Vector<std::uint32_t, lanes>;
    const Bits bits = Bits(value);
    const Bits rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const Bits chosen = (bits & 0x7fffffffU) > 0x7f800000U ? (bits >> 16) | 0x40U : rounded;
    const auto half = __builtin_convertvector(chosen, Vector<std::uint16_t, lanes>);
    simd::store(to, half);
  }
};

// The same as to_float and to_float16 (src/base/half.h), for several at once.
struct HalfNumber {
  using Value = float;
  static constexpr std::size_t bytes = 2;
  template <int lanes>
  [[gnu::always_inline]] static inline Vector<float, lanes> read(const std::byte* from) {
    using Bits = Vector<std::uint32_t, lanes>;
    const Bits half = __builtin_convertvector((load<Vector<std::uint16_t, lanes>>(from)), Bits);
    const Bits magnitude = half & 0x7fffU;
    // The exponent's bias differs by 112; a product is right for subnormal numbers too.
    const Bits scaled = Bits(Vector<float, lanes>(magnitude << 13) * 0x1p112F);
    const Bits quiet = magnitude > 0x7c00U ? Bits(magnitude | 0x200U) : magnitude;
    const Bits special = (quiet << 13) | 0x7f800000U;
    return Vector<float, lanes>((magnitude >= 0x7c00U ? special : scaled) | ((half & 0x8000U) << 16));
  }
  template <int lanes>
  [[gnu::always_inline]] static inline void write(std::byte* to, Vector<float, lanes> value) {
    using Bits = Vector<std::uint32_t, lanes>;
    const Bits bits = Bits(value);
    const Bits magnitude = bits & 0x7fffffffU;
    const Bits normal = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - (112U << 23)) >> 13;
    const Bits small = Bits(Vector<float, lanes>(magnitude) + 0.5F) - 0x3f000000U;  // rounded as every sum is
    const Bits nan = ((magnitude >> 13) & 0x3ffU) | 0x7e00U;
    const Bits zeros = {};
    Bits half = magnitude >= 0x38800000U ? normal : small;
    half = magnitude >= 0x477ff000U ? zeros + 0x7c00U : half;
    half = magnitude > 0x7f800000U ? nan : half;
    const auto narrow = __builtin_convertvector(half | ((bits >> 16) & 0x8000U), Vector<std::uint16_t, lanes>);
    simd::store(to, narrow);
  }
};

struct Sum {
  template <class V>
  [[gnu::always_inline]] static inline V combine(V a, V b) {
    return a + b;
  }
};
struct Product {
  template <class V>
  [[gnu::always_inline]] static inline V combine(V a, V b) {
    return a * b;
  }
};
// The same as smaller() and larger() (src/base/extremes.h), but for quiet NaNs: a result is made quiet at the end.
struct Extreme {};
struct Minimum : Extreme {
  template <class V>
  [[gnu::always_inline]] static inline V combine(V a, V b) {
    return ((a <= b) | (a != a)) ? a : b;
  }
};
struct Maximum : Extreme {
  template <class V>
  [[gnu::always_inline]] static inline V combine(V a, V b) {
    return ((a >= b) | (a != a)) ? a : b;
  }
};
struct Mean : Sum {};

template <class T, int lanes>
[[gnu::always_inline]] inline Vector<T, lanes> quiet(Vector<T, lanes> value) {
  using Bits = Vector<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>, lanes>;
  return Vector<T, lanes>(Bits(value) |
                          (Bits(value != value) & (sizeof(T) == 4 ? 1U << 22U : std::uint64_t{1} << 51U)));
}

template <class Format, class Op, int lanes, int unroll>
[[gnu::always_inline]] inline std::size_t reduce_lanes(const std::byte* const* sources, int count, std::byte* result,
                                                       std::size_t done, std::size_t elements) {
  using V = Vector<typename Format::Value, lanes>;
  constexpr std::size_t step = std::size_t{lanes} * unroll;
  for (; done + step <= elements; done += step) {
    const std::size_t at = done * Format::bytes;
    V total[unroll];
    for (int u = 0; u < unroll; ++u)
      total[u] = Format::template read<lanes>(sources[0] + at + static_cast<std::size_t>(u * lanes) * Format::bytes);
    for (int s = 1; s < count; ++s) {
      const std::byte* const from = sources[s] + at;
      for (int u = 0; u < unroll; ++u)
        total[u] = Op::template combine<V>(
            total[u], Format::template read<lanes>(from + static_cast<std::size_t>(u * lanes) * Format::bytes));
    }
    for (int u = 0; u < unroll; ++u) {
      if constexpr (std::is_same_v<Op, Mean>) total[u] /= static_cast<typename Format::Value>(count);
      if constexpr (std::is_base_of_v<Extreme, Op> && std::is_floating_point_v<typename Format::Value>) {
        total[u] = quiet<typename Format::Value, lanes>(total[u]);
      }
      Format::template write<lanes>(result + at + static_cast<std::size_t>(u * lanes) * Format::bytes, total[u]);
    }
  }
  return done;
}

template <class Format, class Op, int width>
[[gnu::always_inline]] inline void reduce(const std::byte* const* sources, int count, std::byte* result,
                                          std::size_t elements) {
  constexpr int lanes = width / static_cast<int>(sizeof(typename Format::Value));
  constexpr int unroll = 4;
  std::size_t done = reduce_lanes<Format, Op, lanes, unroll>(sources, count, result, 0, elements);
  done = reduce_lanes<Format, Op, lanes, 1>(sources, count, result, done, elements);
  if constexpr (lanes > 4) done = reduce_lanes<Format, Op, 4, 1>(sources, count, result, done, elements);
  if constexpr (lanes > 2) done = reduce_lanes<Format, Op, 2, 1>(sources, count, result, done, elements);
  reduce_lanes<Format, Op, 1, 1>(sources, count, result, done, elements);
}

template <class Format, class Op>
void reduce_portable(const std::byte* const* sources, int count, std::byte* result, std::size_t elements) {
  reduce<Format, Op, 16>(sources, count, result, elements);
}

#if defined(__x86_64__)
template <class Format, class Op>
[[gnu::target("avx2")]] void reduce_avx2(const std::byte* const* sources, int count, std::byte* result,
                                         std::size_t elements) {
  reduce<Format, Op, 32>(sources, count, result, elements);
}

template <class Format, class Op>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] void reduce_avx512(
    const std::byte* const* sources, int count, std::byte* result, std::size_t elements) {
  reduce<Format, Op, 64>(sources, count, result, elements);
}
#endif

using Widths = std::array<ReduceFunction, reduce_widths>;

template <class Format, class Op>
constexpr Widths widths_of() {
#if defined(__x86_64__)
  return {reduce_portable<Format, Op>, reduce_avx2<Format, Op>, reduce_avx512<Format, Op>};
#else
  return {reduce_portable<Format, Op>, nullptr, nullptr};
#endif
}

// Sums and products of integers use unsigned numbers, which wrap around.
template <class Format, class Modular = Format>
Widths floating_or_integer(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return widths_of<Modular, Sum>();
    case ReduceOp::prod:
      return widths_of<Modular, Product>();
    case ReduceOp::min:
      return widths_of<Format, Minimum>();
    case ReduceOp::max:
      return widths_of<Format, Maximum>();
    case ReduceOp::mean:
      if constexpr (std::is_floating_point_v<typename Format::Value>) return widths_of<Format, Mean>();
      break;
  }
  return {};
}

Widths all_widths(ElementType type, ReduceOp op) {
  switch (type) {
    case ElementType::float32:
      return floating_or_integer<Number<float>>(op);
    case ElementType::float64:
      return floating_or_integer<Number<double>>(op);
    case ElementType::int32:
      return floating_or_integer<Number<std::int32_t>, Number<std::uint32_t>>(op);
    case ElementType::int64:
      return floating_or_integer<Number<std::int64_t>, Number<std::uint64_t>>(op);
    case ElementType::float16:
      return floating_or_integer<HalfNumber>(op);
    case ElementType::bfloat16:
      return floating_or_integer<BrainNumber>(op);
    case ElementType::bytes:
      break;
  }
  return {};
}

}  // namespace

int widest_reduce() { return static_cast<int>(cpu::level()); }

ReduceFunction reduce_function(ElementType type, ReduceOp op, int width) {
  return all_widths(type, op).at(static_cast<std::size_t>(width));
}

ReduceFunction reduce_function(ElementType type, ReduceOp op) { return reduce_function(type, op, widest_reduce()); }

}  // namespace onehop::collectives::detail
