// Loops over the rows and runs of a slice, for the pack and unpack loops.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/plan/copy/slice_copy.h"

namespace onehop::detail {

// Calls visit(address, wire offset) for every row: the runs along the innermost of the outer dimensions, which lie at a
// constant stride.
template <class Visit>
inline void for_each_row(const CopyStep& step, const Visit& visit) {
  const CopyShape& shape = *step.shape;
  const int dims = shape.outer - 1;  // those outside the row
  std::array<std::int64_t, Slice::max_dims> index{};
  std::byte* at = step.base;
  const std::int64_t row_bytes = shape.extents[static_cast<std::size_t>(dims)] * shape.run;
  for (std::int64_t wire = 0;; wire += row_bytes) {
    visit(at, wire);
    int d = dims - 1;
    for (; d >= 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      at += shape.strides[i];
      if (++index[i] < shape.extents[i]) break;
      at -= shape.strides[i] * shape.extents[i];
      index[i] = 0;
    }
    if (d < 0) return;
  }
}

[[nodiscard]] inline std::int64_t row_length(const CopyShape& shape) {
  return shape.extents[static_cast<std::size_t>(shape.outer - 1)];
}
[[nodiscard]] inline std::int64_t row_stride(const CopyShape& shape) {
  return shape.strides[static_cast<std::size_t>(shape.outer - 1)];
}

// Runs in lines of their own are fetched this many runs ahead: the processor itself follows rows of such strides too
// late (notes/messages.md, "Halo"). Beyond the end of a row the next one is likely.
inline constexpr std::int64_t ahead = 16;
inline constexpr std::int64_t line = 64;

[[nodiscard]] inline bool in_own_lines(std::int64_t stride) { return stride >= line || stride <= -line; }

// The address `ahead` runs further on, which may lie outside the array: it is only fetched.
[[nodiscard]] inline const void* ahead_of(const std::byte* at, std::int64_t stride) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(at) +
                                       static_cast<std::uintptr_t>(ahead * stride));
}

// Calls copy.operator()<run>() if the compiler should know this length of runs; returns whether it did.
template <class Copy>
inline bool with_known_run(std::int64_t run, const Copy& copy) noexcept {
  switch (run) {
    case 1:
      copy.template operator()<1>();
      return true;
    case 2:
      copy.template operator()<2>();
      return true;
    case 4:
      copy.template operator()<4>();
      return true;
    case 8:
      copy.template operator()<8>();
      return true;
    case 16:
      copy.template operator()<16>();
      return true;
    case 24:
      copy.template operator()<24>();
      return true;
    case 32:
      copy.template operator()<32>();
      return true;
    case 48:
      copy.template operator()<48>();
      return true;
    case 64:
      copy.template operator()<64>();
      return true;
    default:
      return false;
  }
}

// Calls visit(address, wire offset, bytes) for every run of a step of any shape.
template <class Visit>
inline void for_each_run(const CopyStep& step, const Visit& visit) {
  if (step.shape == nullptr) {
    visit(step.base, std::int64_t{0}, step.bytes);
    return;
  }
  const CopyShape& shape = *step.shape;
  if (!shape.pieces.empty()) {
    std::int64_t wire = 0;
    for (const auto& [offset, length] : shape.pieces) {
      visit(step.base + offset, wire, length);
      wire += length;
    }
    return;
  }
  const std::int64_t n = row_length(shape);
  const std::int64_t stride = row_stride(shape);
  for_each_row(step, [&](std::byte* at, std::int64_t wire) {
    for (std::int64_t i = 0; i < n; ++i) visit(at + i * stride, wire + i * shape.run, shape.run);
  });
}

}  // namespace onehop::detail
