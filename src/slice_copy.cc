#include "slice_copy.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace onehop::detail {
namespace {

// Calls visit(address, wire offset) for every row: the innermost outer dimension, which is a loop of constant stride.
template <class Visit>
inline void for_each_row(const CopyStep& step, const Visit& visit) {
  const int dims = step.outer - 1;  // those outside the row
  std::array<std::int64_t, CopyStep::max_outer> index{};
  std::byte* at = step.base;
  const std::int64_t row_bytes = step.extents[static_cast<std::size_t>(dims)] * step.run;
  for (std::int64_t wire = 0;; wire += row_bytes) {
    visit(at, wire);
    int d = dims - 1;
    for (; d >= 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      at += step.strides[i];
      if (++index[i] < step.extents[i]) break;
      at -= step.strides[i] * step.extents[i];
      index[i] = 0;
    }
    if (d < 0) return;
  }
}

// One row of runs whose length the compiler knows.
template <std::size_t run>
inline void pack_rows(const CopyStep& step, std::byte* wire) {
  const std::int64_t n = step.extents[static_cast<std::size_t>(step.outer - 1)];
  const std::int64_t stride = step.strides[static_cast<std::size_t>(step.outer - 1)];
  for_each_row(step, [&](const std::byte* from, std::int64_t offset) {
    std::byte* to = wire + offset;
    for (std::int64_t i = 0; i < n; ++i, from += stride, to += run) std::memcpy(to, from, run);
  });
}

template <std::size_t run>
inline void unpack_rows(const CopyStep& step, const std::byte* wire) {
  const std::int64_t n = step.extents[static_cast<std::size_t>(step.outer - 1)];
  const std::int64_t stride = step.strides[static_cast<std::size_t>(step.outer - 1)];
  for_each_row(step, [&](std::byte* to, std::int64_t offset) {
    const std::byte* from = wire + offset;
    for (std::int64_t i = 0; i < n; ++i, from += run, to += stride) std::memcpy(to, from, run);
  });
}

// Calls visit(address, wire offset, bytes) for every run of a step of any shape.
template <class Visit>
inline void for_each_run(const CopyStep& step, const Visit& visit) {
  if (!step.pieces.empty()) {
    std::int64_t wire = 0;
    for (const auto& [offset, length] : step.pieces) {
      visit(step.base + offset, wire, length);
      wire += length;
    }
    return;
  }
  if (step.outer == 0) {
    if (step.bytes > 0) visit(step.base, std::int64_t{0}, step.run);
    return;
  }
  const std::int64_t n = step.extents[static_cast<std::size_t>(step.outer - 1)];
  const std::int64_t stride = step.strides[static_cast<std::size_t>(step.outer - 1)];
  for_each_row(step, [&](std::byte* at, std::int64_t wire) {
    for (std::int64_t i = 0; i < n; ++i) visit(at + i * stride, wire + i * step.run, step.run);
  });
}

template <class T, class Operation>
inline void combine_with(const CopyStep& step, const std::byte* wire, const Operation& operation) {
  for_each_run(step, [&](std::byte* to, std::int64_t offset, std::int64_t length) {
    const std::byte* from = wire + offset;
    for (std::int64_t i = 0; i < length; i += static_cast<std::int64_t>(sizeof(T))) {
      T mine;
      T theirs;
      std::memcpy(&mine, to + i, sizeof(T));
      std::memcpy(&theirs, from + i, sizeof(T));
      mine = operation(mine, theirs);
      std::memcpy(to + i, &mine, sizeof(T));
    }
  });
}

template <class T>
inline void combine_as(const CopyStep& step, const std::byte* wire, Combine combine) {
  switch (combine) {
    case Combine::replace: unpack(step, wire); return;
    case Combine::add: combine_with<T>(step, wire, [](T a, T b) { return static_cast<T>(a + b); }); return;
    case Combine::min: combine_with<T>(step, wire, [](T a, T b) { return b < a ? b : a; }); return;
    case Combine::max: combine_with<T>(step, wire, [](T a, T b) { return a < b ? b : a; }); return;
    case Combine::prod: combine_with<T>(step, wire, [](T a, T b) { return static_cast<T>(a * b); }); return;
  }
}

}  // namespace

CopyStep make_step(const Slice& slice, std::byte* array, std::int64_t element_bytes) {
  CopyStep step;
  step.base = array;
  step.bytes = slice.elements() * element_bytes;
  step.element_bytes = element_bytes;
  if (step.bytes == 0) return step;
  if (slice.is_list()) {
    slice.for_each_run([&](std::int64_t first, std::int64_t count) {
      step.pieces.emplace_back(first * element_bytes, count * element_bytes);
    });
    return step;
  }
  step.base += slice.offset() * element_bytes;
  step.run = element_bytes;
  int dims = slice.dims();
  if (dims > 0 && slice.strides()[static_cast<std::size_t>(dims - 1)] == 1) {
    --dims;
    step.run *= slice.extents()[static_cast<std::size_t>(dims)];
  }
  step.outer = dims;
  for (std::size_t d = 0; d < static_cast<std::size_t>(dims); ++d) {
    step.extents[d] = slice.extents()[d];
    step.strides[d] = slice.strides()[d] * element_bytes;
  }
  return step;
}

void pack(const CopyStep& step, std::byte* wire) noexcept {
  if (step.outer > 0 && step.pieces.empty()) {
    switch (step.run) {
      case 1: return pack_rows<1>(step, wire);
      case 2: return pack_rows<2>(step, wire);
      case 4: return pack_rows<4>(step, wire);
      case 8: return pack_rows<8>(step, wire);
      case 16: return pack_rows<16>(step, wire);
      case 24: return pack_rows<24>(step, wire);
      case 32: return pack_rows<32>(step, wire);
      case 48: return pack_rows<48>(step, wire);
      case 64: return pack_rows<64>(step, wire);
      default: break;
    }
  }
  for_each_run(step, [&](const std::byte* from, std::int64_t offset, std::int64_t length) {
    std::memcpy(wire + offset, from, static_cast<std::size_t>(length));
  });
}

void unpack(const CopyStep& step, const std::byte* wire) noexcept {
  if (step.outer > 0 && step.pieces.empty()) {
    switch (step.run) {
      case 1: return unpack_rows<1>(step, wire);
      case 2: return unpack_rows<2>(step, wire);
      case 4: return unpack_rows<4>(step, wire);
      case 8: return unpack_rows<8>(step, wire);
      case 16: return unpack_rows<16>(step, wire);
      case 24: return unpack_rows<24>(step, wire);
      case 32: return unpack_rows<32>(step, wire);
      case 48: return unpack_rows<48>(step, wire);
      case 64: return unpack_rows<64>(step, wire);
      default: break;
    }
  }
  for_each_run(step, [&](std::byte* to, std::int64_t offset, std::int64_t length) {
    std::memcpy(to, wire + offset, static_cast<std::size_t>(length));
  });
}

void unpack(const CopyStep& step, const std::byte* wire, Combine combine, ElementType type) noexcept {
  if (combine == Combine::replace) return unpack(step, wire);
  switch (type) {
    case ElementType::float32: return combine_as<float>(step, wire, combine);
    case ElementType::float64: return combine_as<double>(step, wire, combine);
    case ElementType::int32: return combine_as<std::int32_t>(step, wire, combine);
    case ElementType::int64: return combine_as<std::int64_t>(step, wire, combine);
    case ElementType::bytes: break;
  }
  assert(!"bytes can only be replaced; the plan has checked that");
}

}  // namespace onehop::detail
