#include "src/plan/copy/slice_copy.h"

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "src/base/extremes.h"
#include "src/base/half.h"
#include "src/plan/copy/slice_rows.h"

namespace onehop::detail {
namespace {

// A number in memory, and the type in which it is combined. A signed integer is added as an unsigned one: it wraps
// round.
template <class T>
struct Number {
  using Value = T;
  using Modular = T;
};
template <std::signed_integral T>
struct Number<T> {
  using Value = T;
  using Modular = std::make_unsigned_t<T>;
};
struct Half : Float16 {
  Half() = default;
  explicit Half(float value) : Float16(to_float16(value)) {}
  explicit operator float() const { return to_float(*this); }
};
struct BrainHalf : BFloat16 {
  BrainHalf() = default;
  explicit BrainHalf(float value) : BFloat16(to_bfloat16(value)) {}
  explicit operator float() const { return to_float(*this); }
};
template <>
struct Number<Half> {
  using Value = float;
  using Modular = float;
};
template <>
struct Number<BrainHalf> : Number<Half> {};

// Rows of runs whose length the compiler knows. `fetches`: runs in lines of their own are fetched in advance.
template <std::size_t run, bool fetches>
void pack_rows(const CopyStep& step, std::byte* wire) noexcept {
  const std::int64_t n = row_length(*step.shape);
  const std::int64_t stride = row_stride(*step.shape);
  for_each_row(step, [&](const std::byte* from, std::int64_t offset) {
    std::byte* to = wire + offset;
    for (std::int64_t i = 0; i < n; ++i, from += stride, to += run) {
      if constexpr (fetches) __builtin_prefetch(ahead_of(from, stride), 0);
      std::memcpy(to, from, run);
    }
  });
}

template <std::size_t run, bool fetches>
void unpack_rows(const CopyStep& step, const std::byte* wire) noexcept {
  const std::int64_t n = row_length(*step.shape);
  const std::int64_t stride = row_stride(*step.shape);
  for_each_row(step, [&](std::byte* to, std::int64_t offset) {
    const std::byte* from = wire + offset;
    for (std::int64_t i = 0; i < n; ++i, from += run, to += stride) {
      if constexpr (fetches) __builtin_prefetch(ahead_of(to, stride), 1);
      std::memcpy(to, from, run);
    }
  });
}

template <class T, class Value, class Operation>
inline void combine_with(const CopyStep& step, const std::byte* wire, const Operation& operation) {
  for_each_run(step, [&](std::byte* to, std::int64_t offset, std::int64_t length) {
    const std::byte* from = wire + offset;
    for (std::int64_t i = 0; i < length; i += static_cast<std::int64_t>(sizeof(T))) {
      T mine;
      T theirs;
      std::memcpy(&mine, to + i, sizeof(T));
      std::memcpy(&theirs, from + i, sizeof(T));
      mine = static_cast<T>(operation(static_cast<Value>(mine), static_cast<Value>(theirs)));
      std::memcpy(to + i, &mine, sizeof(T));
    }
  });
}

template <class T>
inline void combine_as(const CopyStep& step, const std::byte* wire, Combine combine) {
  using Value = typename Number<T>::Value;
  using Modular = typename Number<T>::Modular;
  switch (combine) {
    case Combine::replace:
      unpack(step, wire);
      return;
    case Combine::add:
      combine_with<T, Modular>(step, wire, [](Modular a, Modular b) { return a + b; });
      return;
    case Combine::min:
      combine_with<T, Value>(step, wire, base::smaller<Value>);
      return;
    case Combine::max:
      combine_with<T, Value>(step, wire, base::larger<Value>);
      return;
    case Combine::prod:
      combine_with<T, Modular>(step, wire, [](Modular a, Modular b) { return a * b; });
      return;
  }
}

}  // namespace

CopyStep make_step(const Slice& slice, std::byte* array, std::int64_t element_bytes, std::deque<CopyShape>& shapes) {
  CopyStep step;
  step.base = array;
  step.bytes = slice.elements() * element_bytes;
  if (step.bytes == 0) return step;
  CopyShape shape;
  if (slice.is_list()) {
    slice.for_each_run([&](std::int64_t first, std::int64_t count) {
      shape.pieces.emplace_back(first * element_bytes, count * element_bytes);
    });
    if (shape.pieces.size() == 1) {
      step.base += shape.pieces.front().first;
      return step;
    }
    step.shape = &shapes.emplace_back(std::move(shape));
    return step;
  }
  step.base += slice.offset() * element_bytes;
  int dims = slice.dims();
  shape.run = element_bytes;
  if (dims > 0 && slice.strides()[static_cast<std::size_t>(dims - 1)] == 1) {
    --dims;
    shape.run *= slice.extents()[static_cast<std::size_t>(dims)];
  }
  if (dims == 0) return step;
  shape.outer = dims;
  for (std::size_t d = 0; d < static_cast<std::size_t>(dims); ++d) {
    shape.extents[d] = slice.extents()[d];
    shape.strides[d] = slice.strides()[d] * element_bytes;
  }
  // The parts of a long message often have the same shape and differ only in where they begin.
  step.shape = !shapes.empty() && shapes.back() == shape ? &shapes.back() : &shapes.emplace_back(std::move(shape));
  return step;
}

void pack_shape(const CopyStep& step, std::byte* wire) noexcept {
  const bool copied = with_known_run(step.shape->run, [&]<std::size_t run>() {
    if (in_own_lines(row_stride(*step.shape))) {
      pack_rows<run, true>(step, wire);
    } else {
      pack_rows<run, false>(step, wire);
    }
  });
  if (copied) return;
  for_each_run(step, [&](const std::byte* from, std::int64_t offset, std::int64_t length) {
    copy_bytes(wire + offset, from, static_cast<std::size_t>(length));
  });
}

void unpack_shape(const CopyStep& step, const std::byte* wire) noexcept {
  const bool copied = with_known_run(step.shape->run, [&]<std::size_t run>() {
    if (in_own_lines(row_stride(*step.shape))) {
      unpack_rows<run, true>(step, wire);
    } else {
      unpack_rows<run, false>(step, wire);
    }
  });
  if (copied) return;
  for_each_run(step, [&](std::byte* to, std::int64_t offset, std::int64_t length) {
    copy_bytes(to, wire + offset, static_cast<std::size_t>(length));
  });
}

void pack_shape(const CopyStep& step, std::byte* wire, StoreFunction store) noexcept {
  for_each_run(step, [&](const std::byte* from, std::int64_t offset, std::int64_t length) {
    store(wire + offset, from, static_cast<std::size_t>(length));
  });
}

namespace {

#if defined(__x86_64__)
__attribute__((target("prfchw")))
#endif
void fetch_for_writing(std::byte* at, std::int64_t bytes) noexcept {
  for (std::int64_t i = 0; i < bytes; i += line) __builtin_prefetch(at + i, 1);
}

}  // namespace

void pack_shape_fetching(const CopyStep& step, std::byte* wire, std::int64_t room) noexcept {
  constexpr std::int64_t ahead_bytes = 1024;
  fetch_for_writing(wire, std::min(ahead_bytes, room));
  for_each_run(step, [&](const std::byte* from, std::int64_t offset, std::int64_t length) {
    const std::int64_t next = offset + ahead_bytes;
    fetch_for_writing(wire + next, std::min(length, room - next));
    std::memcpy(wire + offset, from, static_cast<std::size_t>(length));
  });
}

void touch(const CopyStep& step) noexcept {
  for_each_run(step, [](const std::byte* at, std::int64_t, std::int64_t length) {
    for (std::int64_t i = 0; i < length; i += 64) static_cast<void>(*static_cast<const volatile std::byte*>(at + i));
  });
}

void unpack(const CopyStep& step, const std::byte* wire, Combine combine, ElementType type) noexcept {
  if (combine == Combine::replace) return unpack(step, wire);
  switch (type) {
    case ElementType::float32:
      return combine_as<float>(step, wire, combine);
    case ElementType::float64:
      return combine_as<double>(step, wire, combine);
    case ElementType::int32:
      return combine_as<std::int32_t>(step, wire, combine);
    case ElementType::int64:
      return combine_as<std::int64_t>(step, wire, combine);
    case ElementType::float16:
      return combine_as<Half>(step, wire, combine);
    case ElementType::bfloat16:
      return combine_as<BrainHalf>(step, wire, combine);
    case ElementType::bytes:
      break;
  }
  assert(!"bytes can only be replaced; the plan has checked that");
}

}  // namespace onehop::detail
