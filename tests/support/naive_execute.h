// Executes a schedule for all ranks in the plainest way: a round reads everything into copies, then writes them one
// element after the other in the order of its transfers. Shares no code with plans, packing or Slice::for_each_run, so
// that these can be held against it; a codec is what `encode` and `decode` (codec.h) make of all elements of a
// transfer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "onehop/schedule.h"
#include "src/base/half.h"

namespace onehop::testing {

// memory[rank][array] are the bytes of that array on that rank.
using Memory = std::vector<std::vector<std::vector<std::byte>>>;

inline Memory allocate(const Schedule& schedule, std::byte fill = std::byte{0}) {
  Memory memory(static_cast<std::size_t>(schedule.ranks));
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (const ArraySpec& array : schedule.arrays) {
      const auto bytes = static_cast<std::size_t>(array.elements_on(rank) * array.element_bytes);
      memory[static_cast<std::size_t>(rank)].emplace_back(bytes, fill);
    }
  }
  return memory;
}

// The same, filled with random bytes.
inline Memory random_memory(const Schedule& schedule, unsigned seed) {
  std::mt19937 random(seed);
  Memory memory = allocate(schedule);
  for (auto& rank : memory) {
    for (auto& array : rank) {
      for (std::byte& b : array) b = static_cast<std::byte>(random());
    }
  }
  return memory;
}

// The same, filled with floating-point numbers whose sums and products stay finite and depend on the order, or with
// small integers. Arrays of bytes get random bytes.
inline Memory random_numbers(const Schedule& schedule, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Memory memory = random_memory(schedule, seed);
  const auto fill = [&](std::vector<std::byte>& array, const auto& make) {
    const auto size = sizeof(make());
    for (std::size_t at = 0; at + size <= array.size(); at += size) {
      const auto number = make();
      std::memcpy(&array[at], &number, size);
    }
  };
  for (auto& rank : memory) {
    for (std::size_t a = 0; a < rank.size(); ++a) {
      const ElementType type = schedule.arrays[a].type;
      if (type == ElementType::float32) fill(rank[a], [&] { return normal(random); });
      if (type == ElementType::float64) fill(rank[a], [&] { return static_cast<double>(normal(random)) / 3; });
      if (type == ElementType::float16) fill(rank[a], [&] { return to_float16(normal(random)); });
      if (type == ElementType::bfloat16) fill(rank[a], [&] { return to_bfloat16(normal(random)); });
      if (type == ElementType::int32) fill(rank[a], [&] { return static_cast<std::int32_t>(random() % 5); });
      if (type == ElementType::int64) fill(rank[a], [&] { return static_cast<std::int64_t>(random() % 5); });
    }
  }
  return memory;
}

// All element numbers of a slice in visiting order, each computed by itself.
inline std::vector<std::int64_t> elements_of(const Slice& slice) {
  if (slice.is_list()) return {slice.indices().begin(), slice.indices().end()};
  std::vector<std::int64_t> elements;
  for (std::int64_t k = 0; k < slice.elements(); ++k) {
    std::int64_t element = slice.offset();
    std::int64_t rest = k;
    for (int d = slice.dims() - 1; d >= 0; --d) {
      const auto dim = static_cast<std::size_t>(d);
      element += rest % slice.extents()[dim] * slice.strides()[dim];
      rest /= slice.extents()[dim];
    }
    elements.push_back(element);
  }
  return elements;
}

// A NaN anywhere gives a NaN: of two the present one.
template <class T>
T extreme(Combine combine, T there, T comes) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(there)) return there;
    if (std::isnan(comes)) return comes;
  }
  return combine == Combine::min ? std::min(there, comes) : std::max(there, comes);
}

template <class T>
T combined(Combine combine, T there, T comes) {
  if (combine == Combine::add) return static_cast<T>(there + comes);
  if (combine == Combine::prod) return static_cast<T>(there * comes);
  return extreme(combine, there, comes);
}

template <class T>
void combine_one(Combine combine, std::byte* target, const std::byte* source) {
  T there{};
  T comes{};
  std::memcpy(&there, target, sizeof(T));
  std::memcpy(&comes, source, sizeof(T));
  if constexpr (std::is_same_v<T, Float16>) {
    there = to_float16(combined(combine, to_float(there), to_float(comes)));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    there = to_bfloat16(combined(combine, to_float(there), to_float(comes)));
  } else {
    there = combined(combine, there, comes);
  }
  std::memcpy(target, &there, sizeof(T));
}

template <class T>
void combine_element(Combine combine, std::byte* target, const std::byte* source, std::int64_t element_bytes) {
  const auto size = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t at = 0; at < element_bytes; at += size) combine_one<T>(combine, target + at, source + at);
}

inline void write_one(const Transfer& transfer, const ArraySpec& array, std::byte* target, const std::byte* source) {
  const std::int64_t bytes = array.element_bytes;
  if (transfer.combine == Combine::replace) {
    std::memcpy(target, source, static_cast<std::size_t>(bytes));
    return;
  }
  switch (array.type) {
    case ElementType::float32:
      return combine_element<float>(transfer.combine, target, source, bytes);
    case ElementType::float64:
      return combine_element<double>(transfer.combine, target, source, bytes);
    case ElementType::int32:
      return combine_element<std::int32_t>(transfer.combine, target, source, bytes);
    case ElementType::int64:
      return combine_element<std::int64_t>(transfer.combine, target, source, bytes);
    case ElementType::float16:
      return combine_element<Float16>(transfer.combine, target, source, bytes);
    case ElementType::bfloat16:
      return combine_element<BFloat16>(transfer.combine, target, source, bytes);
    case ElementType::bytes:
      break;
  }
}

// The elements of a transfer as they arrive, one after the other.
inline std::vector<std::byte> arriving(const Transfer& transfer, const ArraySpec& array,
                                       const std::vector<std::byte>& source) {
  std::vector<std::byte> bytes;
  for (const std::int64_t element : elements_of(transfer.from.slice)) {
    const auto at = source.begin() + element * array.element_bytes;
    bytes.insert(bytes.end(), at, at + array.element_bytes);
  }
  if (transfer.codec == Codec::raw || transfer.from.rank == transfer.to.rank) return bytes;
  const auto numbers = static_cast<std::int64_t>(bytes.size()) / bytes_of(array.type);
  std::vector<std::byte> wire(static_cast<std::size_t>(encoded_bytes(transfer.codec, array.type, numbers)));
  encode(transfer.codec, array.type, bytes, wire);
  decode(transfer.codec, array.type, wire, bytes);
  return bytes;
}

inline void naive_execute_round(const Schedule& schedule, const Round& round, Memory& memory) {
  const Memory before = memory;
  for (const Transfer& transfer : round.transfers) {
    const auto& source =
        before.at(static_cast<std::size_t>(transfer.from.rank)).at(static_cast<std::size_t>(transfer.from.array));
    auto& target =
        memory.at(static_cast<std::size_t>(transfer.to.rank)).at(static_cast<std::size_t>(transfer.to.array));
    const ArraySpec& array = schedule.arrays.at(static_cast<std::size_t>(transfer.to.array));
    const std::vector<std::byte> arrived = arriving(transfer, array, source);
    const auto writes = elements_of(transfer.to.slice);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      const auto write_at = static_cast<std::size_t>(writes[i] * array.element_bytes);
      const auto read_at = i * static_cast<std::size_t>(array.element_bytes);
      write_one(transfer, array, &target.at(write_at), &arrived.at(read_at));
    }
  }
}

inline void naive_execute(const Schedule& schedule, Memory& memory) {
  for (const Round& round : schedule.rounds) naive_execute_round(schedule, round, memory);
}

}  // namespace onehop::testing
