// Copies from slice to slice, without a buffer.
#include <cstring>

#include "src/plan/copy/slice_copy.h"
#include "src/plan/copy/slice_rows.h"

namespace onehop::detail {
namespace {

// Calls copy_row(to, from) for the rows of two shapes that are alike, with one set of indices for both.
template <class CopyRow>
inline void for_each_row_pair(const CopyStep& to, const CopyStep& from, const CopyRow& copy_row) {
  const CopyShape& a = *to.shape;
  const CopyShape& b = *from.shape;
  const int dims = a.outer - 1;
  std::array<std::int64_t, Slice::max_dims> index{};
  std::byte* write = to.base;
  const std::byte* read = from.base;
  for (;;) {
    copy_row(write, read);
    int d = dims - 1;
    for (; d >= 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      write += a.strides[i];
      read += b.strides[i];
      if (++index[i] < a.extents[i]) break;
      write -= a.strides[i] * a.extents[i];
      read -= b.strides[i] * a.extents[i];
      index[i] = 0;
    }
    if (d < 0) return;
  }
}

// A face often reads and writes the same lines, or lines nearby, so only the elements that it reads are fetched.
template <std::size_t run, bool fetches>
void copy_rows(const CopyStep& to, const CopyStep& from) noexcept {
  const std::int64_t n = row_length(*to.shape);
  const std::int64_t write_stride = row_stride(*to.shape);
  const std::int64_t read_stride = row_stride(*from.shape);
  for_each_row_pair(to, from, [&](std::byte* write, const std::byte* read) {
    for (std::int64_t i = 0; i < n; ++i, write += write_stride, read += read_stride) {
      if constexpr (fetches) __builtin_prefetch(ahead_of(read, read_stride), 0);
      std::memcpy(write, read, run);
    }
  });
}

template <class CopyRun>
void copy_any_rows(const CopyStep& to, const CopyStep& from, const CopyRun& copy_run) noexcept {
  const std::int64_t n = row_length(*to.shape);
  const std::int64_t write_stride = row_stride(*to.shape);
  const std::int64_t read_stride = row_stride(*from.shape);
  const auto run = static_cast<std::size_t>(to.shape->run);
  for_each_row_pair(to, from, [&](std::byte* write, const std::byte* read) {
    for (std::int64_t i = 0; i < n; ++i, write += write_stride, read += read_stride) copy_run(write, read, run);
  });
}

template <std::size_t run>
void copy_both(const CopyStep& to, const CopyStep& from, const CopyStep& other_to,
               const CopyStep& other_from) noexcept {
  const std::int64_t n = row_length(*from.shape);
  const std::int64_t stride = row_stride(*from.shape);
  for_each_row(from, [&](const std::byte* read, std::int64_t) {
    const std::int64_t row = read - from.base;
    std::byte* write = to.base + row;
    const std::byte* other_read = other_from.base + row;
    std::byte* other_write = other_to.base + row;
    for (std::int64_t i = 0; i < n; ++i) {
      __builtin_prefetch(ahead_of(read, stride), 0);
      __builtin_prefetch(ahead_of(other_read, stride), 0);
      std::memcpy(write, read, run);
      std::memcpy(other_write, other_read, run);
      read += stride;
      write += stride;
      other_read += stride;
      other_write += stride;
    }
  });
}

}  // namespace

bool alike(const CopyStep& to, const CopyStep& from) noexcept {
  if (to.bytes != from.bytes || (to.shape == nullptr) != (from.shape == nullptr)) return false;
  if (to.shape == nullptr) return true;
  return to.shape->pieces.empty() && from.shape->pieces.empty() && to.shape->run == from.shape->run &&
         to.shape->outer == from.shape->outer && to.shape->extents == from.shape->extents;
}

void copy_between(const CopyStep& to, const CopyStep& from) noexcept {
  if (to.shape == nullptr) return copy_bytes(to.base, from.base, static_cast<std::size_t>(to.bytes));
  const bool copied = with_known_run(to.shape->run, [&]<std::size_t run>() {
    if (in_own_lines(row_stride(*from.shape))) {
      copy_rows<run, true>(to, from);
    } else {
      copy_rows<run, false>(to, from);
    }
  });
  if (!copied) copy_any_rows(to, from, copy_bytes);
}

void copy_between(const CopyStep& to, const CopyStep& from, StoreFunction store) noexcept {
  if (to.shape == nullptr) return store(to.base, from.base, static_cast<std::size_t>(to.bytes));
  copy_any_rows(to, from, store);
}

bool are_pair(const CopyStep& to, const CopyStep& from, const CopyStep& other_to, const CopyStep& other_from) noexcept {
  if (from.shape == nullptr || to.shape == nullptr || other_to.shape == nullptr || other_from.shape == nullptr) {
    return false;
  }
  const CopyShape& shape = *from.shape;
  return shape.pieces.empty() && shape.run < line && in_own_lines(row_stride(shape)) && *to.shape == shape &&
         *other_to.shape == shape && *other_from.shape == shape && with_known_run(shape.run, []<std::size_t run>() {});
}

void copy_pair(const CopyStep& to, const CopyStep& from, const CopyStep& other_to,
               const CopyStep& other_from) noexcept {
  with_known_run(from.shape->run, [&]<std::size_t run>() { copy_both<run>(to, from, other_to, other_from); });
}

}  // namespace onehop::detail
