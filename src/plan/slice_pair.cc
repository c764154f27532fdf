#include "src/plan/slice_pair.h"

#include <cstring>

#include "src/plan/slice_rows.h"

namespace onehop::detail {
namespace {

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
