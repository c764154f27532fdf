// Sources of reductions, and their results calculated one element at a time, as docs/reference/allreduce.md says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "onehop/collectives/collectives.h"
#include "onehop/group.h"
#include "onehop/half.h"

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

inline const Bytes& of_rank(const std::vector<Bytes>& sources, const Group& group) {
  return sources[static_cast<std::size_t>(group.rank())];
}

}  // namespace onehop::collectives::testing
