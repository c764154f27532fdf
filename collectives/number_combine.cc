#include "collectives/number_combine.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "src/base/extremes.h"

namespace onehop::collectives::detail {

namespace {

template <class Real>
struct Complex {
  Real re;
  Real im;
};

template <class T>
constexpr bool is_complex = !std::is_arithmetic_v<T>;
constexpr bool is_logical(ArrayOp op) { return op >= ArrayOp::logical_and && op <= ArrayOp::logical_xor; }
constexpr bool is_bitwise(ArrayOp op) { return op >= ArrayOp::bitwise_and && op <= ArrayOp::bitwise_xor; }
constexpr bool is_extreme(ArrayOp op) { return op == ArrayOp::min || op == ArrayOp::max; }

template <class T>
T read(const std::byte* at, std::size_t i) {
  T value;
  std::memcpy(&value, at + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void write(std::byte* at, std::size_t i, T value) {
  std::memcpy(at + i * sizeof(T), &value, sizeof(T));
}

template <class T>
bool truth(T a) {
  if constexpr (is_complex<T>) {
    return a.re != 0 || a.im != 0;
  } else {
    return a != 0;
  }
}

template <class T>
T number(int value) {
  if constexpr (is_complex<T>) {
    return T{static_cast<decltype(T::re)>(value), 0};
  } else {
    return static_cast<T>(value);
  }
}

template <ArrayOp op, class T>
T combined_real(T a, T b) {
  if constexpr (is_extreme(op)) {
    return op == ArrayOp::min ? base::smaller(a, b) : base::larger(a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    return op == ArrayOp::prod ? a * b : a + b;
  } else {  // as unsigned numbers of 64 bits, which wrap around
    const std::uint64_t x = static_cast<std::make_unsigned_t<T>>(a);
    const std::uint64_t y = static_cast<std::make_unsigned_t<T>>(b);
    if (op == ArrayOp::prod) return static_cast<T>(x * y);
    if (op == ArrayOp::bitwise_and) return static_cast<T>(x & y);
    if (op == ArrayOp::bitwise_or) return static_cast<T>(x | y);
    return static_cast<T>(op == ArrayOp::bitwise_xor ? x ^ y : x + y);
  }
}

template <ArrayOp op, class T>
T combined(T a, T b) {
  if constexpr (is_logical(op)) {
    const bool x = truth(a);
    const bool y = truth(b);
    return number<T>(static_cast<int>(op == ArrayOp::logical_and  ? x && y
                                      : op == ArrayOp::logical_or ? x || y
                                                                  : x != y));
  } else if constexpr (is_complex<T>) {
    return op == ArrayOp::prod ? T{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re} : T{a.re + b.re, a.im + b.im};
  } else {
    return combined_real<op>(a, b);
  }
}

template <ArrayOp op, class T>
void combine(const std::byte* first, const std::byte* then, std::byte* result, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) write(result, i, combined<op>(read<T>(first, i), read<T>(then, i)));
}

template <class T>
void to_truth(std::byte* numbers, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) write(numbers, i, number<T>(static_cast<int>(truth(read<T>(numbers, i)))));
}

// As allreduce does, also where nothing follows.
template <class T>
void to_quiet(std::byte* numbers, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) write(numbers, i, base::quiet(read<T>(numbers, i)));
}

template <class T>
void divide(std::byte* numbers, std::size_t elements, int ranks) {
  if constexpr (is_complex<T>) {
    divide<decltype(T::re)>(numbers, 2 * elements, ranks);
  } else {
    for (std::size_t i = 0; i < elements; ++i) write(numbers, i, read<T>(numbers, i) / static_cast<T>(ranks));
  }
}

template <class T, int value>
void fill(std::byte* numbers, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) write(numbers, i, number<T>(value));
}

template <ArrayOp op, class T>
constexpr NumberCombine made() {
  constexpr bool exists = is_bitwise(op)        ? std::is_integral_v<T>
                          : is_extreme(op)      ? !is_complex<T>
                          : op == ArrayOp::mean ? !std::is_integral_v<T>
                                                : true;
  if constexpr (exists) {
    NumberCombine made{.combine = combine<op, T>};
    if constexpr (is_logical(op)) made.begin = to_truth<T>;
    if constexpr (is_extreme(op) && std::is_floating_point_v<T>) made.begin = to_quiet<T>;
    if constexpr (op == ArrayOp::mean) {
      made.divide = divide<T>;
    } else if constexpr (!is_extreme(op)) {
      constexpr bool one = op == ArrayOp::prod || op == ArrayOp::logical_and;
      made.neutral = fill < T, op == ArrayOp::bitwise_and ? -1 : static_cast<int>(one) > ;
    }
    return made;
  }
  return {};
}

using Types = std::tuple<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                         std::uint32_t, std::uint64_t, float, double, Complex<float>, Complex<double>>;
constexpr std::size_t ops = static_cast<std::size_t>(ArrayOp::mean) + 1;

template <std::size_t... entry>
constexpr auto table_of(std::index_sequence<entry...> /*entries*/) {
  return std::array{made<static_cast<ArrayOp>(entry % ops), std::tuple_element_t<entry / ops, Types>>()...};
}

}  // namespace

NumberCombine number_combine(NumberType type, ArrayOp op) {
  static constexpr auto table = table_of(std::make_index_sequence<std::tuple_size_v<Types> * ops>());
  return table.at(static_cast<std::size_t>(type) * ops + static_cast<std::size_t>(op));
}

}  // namespace onehop::collectives::detail
