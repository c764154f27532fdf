// The only pack and unpack loops: between a slice of an array and consecutive bytes. Everything about a slice is worked out when
// a plan is made; a step is what is left for the fast path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "onehop/schedule.h"
#include "onehop/slice.h"

namespace onehop::detail {

// A slice of an array in memory: runs of `run` consecutive bytes, at the places that the other dimensions give.
struct CopyStep {
  static constexpr int max_outer = Slice::max_dims;

  std::byte* base = nullptr;
  std::int64_t bytes = 0;  // on the wire
  std::int64_t run = 0;
  int outer = 0;                                     // dimensions besides the run
  std::array<std::int64_t, max_outer> extents{};     // of those, the last running fastest
  std::array<std::int64_t, max_outer> strides{};     // in bytes
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces;  // a list's runs as (offset, length) in bytes; else empty
  std::int64_t element_bytes = 1;
};

// The step for `slice` of an array of elements of `element_bytes` bytes that begins at `array`.
[[nodiscard]] CopyStep make_step(const Slice& slice, std::byte* array, std::int64_t element_bytes);

// Gathers the slice into step.bytes consecutive bytes.
void pack(const CopyStep& step, std::byte* wire) noexcept;
// Scatters them.
void unpack(const CopyStep& step, const std::byte* wire) noexcept;
// Scatters them, combining with what is there.
void unpack(const CopyStep& step, const std::byte* wire, Combine combine, ElementType type) noexcept;

}  // namespace onehop::detail
