// Sources of reductions, and their results calculated one element at a time, as docs/reference/allreduce.md says.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "onehop/collectives/collectives.h"
#include "onehop/group.h"
#include "src/base/half.h"

namespace onehop::collectives::testing {

using Bytes = std::vector<std::byte>;

inline constexpr ElementType types[] = {ElementType::float64, ElementType::float32,  ElementType::float16,
                                        ElementType::int32,   ElementType::bfloat16, ElementType::int64};
inline constexpr ReduceOp ops[] = {ReduceOp::sum, ReduceOp::mean, ReduceOp::min, ReduceOp::max, ReduceOp::prod};

inline bool makes_sense(ElementType type, ReduceOp op) {
  return op != ReduceOp::mean || (type != ElementType::int32 && type != ElementType::int64);
}

template <class T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Numbers of the calculation and back, for each type.
inline double widen(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::float64:
      return get<double>(at);
    case ElementType::float32:
      return get<float>(at);
    case ElementType::float16:
      return to_float(get<Float16>(at));
    case ElementType::bfloat16:
      return to_float(get<BFloat16>(at));
    default:
      return 0;
  }
}

template <class T>
T combined(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::mean:
      return static_cast<T>(a + b);
    case ReduceOp::prod:
      return static_cast<T>(a * b);
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return a < b ? b : a;
  }
  return a;
}

template <class T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// One element, folded in the order of ranks, as docs/reference/allreduce.md says.
inline void expected_element(ElementType type, ReduceOp op, const std::vector<Bytes>& sources, std::size_t at,
                             std::byte* to) {
  const auto fold = [&](auto first, const auto& read) {
    auto value = first;
    for (std::size_t rank = 1; rank < sources.size(); ++rank) value = combined(op, value, read(&sources[rank][at]));
    if (op == ReduceOp::mean) value = value / static_cast<decltype(value)>(sources.size());
    return value;
  };
  const std::byte* first = &sources[0][at];
  const auto narrow = [&](const std::byte* from) { return static_cast<float>(widen(type, from)); };
  switch (type) {
    case ElementType::float64:
      return put(to, fold(get<double>(first), get<double>));
    case ElementType::float32:
      return put(to, fold(get<float>(first), get<float>));
    case ElementType::float16:
      return put(to, to_float16(fold(narrow(first), narrow)));
    case ElementType::bfloat16:
      return put(to, to_bfloat16(fold(narrow(first), narrow)));
    case ElementType::int32:
      if (op == ReduceOp::min || op == ReduceOp::max) return put(to, fold(get<std::int32_t>(first), get<std::int32_t>));
      return put(to, fold(get<std::uint32_t>(first), get<std::uint32_t>));
    case ElementType::int64:
      if (op == ReduceOp::min || op == ReduceOp::max) return put(to, fold(get<std::int64_t>(first), get<std::int64_t>));
      return put(to, fold(get<std::uint64_t>(first), get<std::uint64_t>));
    case ElementType::bytes:
      break;
  }
}

// Random numbers of moderate size, or for integers random bits.
inline Bytes random_source(ElementType type, std::int64_t elements, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  const auto size = static_cast<std::size_t>(bytes_of(type));
  Bytes bytes(static_cast<std::size_t>(elements) * size);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    if (type == ElementType::float64) put(&bytes[at], static_cast<double>(normal(random)) / 3);
    if (type == ElementType::float32) put(&bytes[at], normal(random));
    if (type == ElementType::float16) put(&bytes[at], to_float16(normal(random)));
    if (type == ElementType::bfloat16) put(&bytes[at], to_bfloat16(normal(random)));
    if (type == ElementType::int32) put(&bytes[at], static_cast<std::uint32_t>(random()));
    if (type == ElementType::int64) put(&bytes[at], static_cast<std::uint64_t>(random()));
  }
  return bytes;
}

inline std::vector<Bytes> random_sources(ElementType type, std::int64_t elements, int ranks, unsigned seed) {
  std::vector<Bytes> sources;
  for (int rank = 0; rank < ranks; ++rank) {
    sources.push_back(random_source(type, elements, seed * 100 + static_cast<unsigned>(rank)));
  }
  return sources;
}

inline Bytes expected(ElementType type, ReduceOp op, const std::vector<Bytes>& sources) {
  Bytes result(sources[0].size());
  const auto size = static_cast<std::size_t>(bytes_of(type));
  for (std::size_t at = 0; at < result.size(); at += size) expected_element(type, op, sources, at, &result[at]);
  return result;
}

// The bits of a floating-point type.
struct FloatLayout {
  int exponent;
  int mantissa;

  [[nodiscard]] std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent) - 1) << mantissa; }
  [[nodiscard]] std::uint64_t one() const { return ((std::uint64_t{1} << (exponent - 1)) - 1) << mantissa; }
  [[nodiscard]] std::uint64_t quiet() const { return std::uint64_t{1} << (mantissa - 1); }
  [[nodiscard]] std::uint64_t sign() const { return std::uint64_t{1} << (exponent + mantissa); }
  [[nodiscard]] bool is_nan(std::uint64_t bits) const { return (bits & (sign() - 1)) > infinity(); }
};

inline FloatLayout layout_of(ElementType type) {
  if (type == ElementType::float64) return {11, 52};
  if (type == ElementType::float32) return {8, 23};
  return type == ElementType::float16 ? FloatLayout{5, 10} : FloatLayout{8, 7};
}

inline constexpr ElementType floating_types[] = {ElementType::float64, ElementType::float32, ElementType::float16,
                                                 ElementType::bfloat16};

// Every pair of numbers of all kinds: zeros, subnormal and finite ones, infinities, and NaNs with several payloads,
// quiet and signaling, of both signs. `first` and `second` have one number of each pair.
struct SpecialPairs {
  Bytes first;
  Bytes second;
  std::int64_t count = 0;

  explicit SpecialPairs(ElementType type) {
    const FloatLayout f = layout_of(type);
    std::vector<std::uint64_t> numbers;
    for (const std::uint64_t sign : {std::uint64_t{0}, f.sign()}) {
      for (const std::uint64_t magnitude : {std::uint64_t{0}, std::uint64_t{1}, f.one(), f.infinity() - 1, f.infinity(),
                                            f.infinity() | 1, f.infinity() | f.quiet(), f.infinity() | f.quiet() | 3}) {
        numbers.push_back(sign | magnitude);
      }
    }
    const auto size = static_cast<std::size_t>(bytes_of(type));
    for (const std::uint64_t a : numbers) {
      for (const std::uint64_t b : numbers) {
        append(first, a, size);
        append(second, b, size);
        ++count;
      }
    }
  }

 private:
  static void append(Bytes& bytes, std::uint64_t number, std::size_t size) {
    bytes.resize(bytes.size() + size);
    std::memcpy(&bytes[bytes.size() - size], &number, size);
  }
};

// The smaller or larger of two numbers, by their bits: the first NaN, made quiet, or else the first of equal numbers.
inline std::uint64_t extreme_of(ElementType type, bool smaller, const std::byte* a, const std::byte* b) {
  const auto size = static_cast<std::size_t>(bytes_of(type));
  std::uint64_t bits_a = 0;
  std::uint64_t bits_b = 0;
  std::memcpy(&bits_a, a, size);
  std::memcpy(&bits_b, b, size);
  const FloatLayout f = layout_of(type);
  if (f.is_nan(bits_a)) return bits_a | f.quiet();
  if (f.is_nan(bits_b)) return bits_b | f.quiet();
  const bool takes_b = smaller ? widen(type, b) < widen(type, a) : widen(type, b) > widen(type, a);
  return takes_b ? bits_b : bits_a;
}

// Expects the smaller or larger number of each pair.
inline void expect_extremes(ElementType type, bool smaller, const SpecialPairs& pairs, const Bytes& found) {
  const auto size = static_cast<std::size_t>(bytes_of(type));
  for (std::size_t at = 0; at < found.size(); at += size) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &found[at], size);
    ASSERT_EQ(bits, extreme_of(type, smaller, &pairs.first[at], &pairs.second[at]))
        << to_string(type) << (smaller ? " min" : " max") << " of pair " << at / size;
  }
}

inline const Bytes& of_rank(const std::vector<Bytes>& sources, const Group& group) {
  return sources[static_cast<std::size_t>(group.rank())];
}

}  // namespace onehop::collectives::testing
