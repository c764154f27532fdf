// A `Slice` is a region of an array: a strided box or a list of indices. It holds element numbers, not memory. Elements
// travel in the order in which the slice visits them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace onehop {

class Slice {
 public:
  static constexpr int max_dims = 16;

  // An empty slice.
  Slice() = default;

  // `count` elements from `offset` on.
  [[nodiscard]] static Slice range(std::int64_t offset, std::int64_t count);

  // A strided box: element (i0, i1, ...) is number offset + sum(i_d * strides[d]), the last index running fastest.
  // At most `max_dims` dimensions; extents >= 0; strides may have any sign, but no element number may be negative.
  // Throws BadInput.
  [[nodiscard]] static Slice box(std::int64_t offset, std::span<const std::int64_t> extents,
                                 std::span<const std::int64_t> strides);

  // The region [start, start + extents) of a C-ordered array of `shape`. Throws BadInput if it does not lie inside.
  [[nodiscard]] static Slice subarray(std::span<const std::int64_t> shape, std::span<const std::int64_t> start,
                                      std::span<const std::int64_t> extents);

  // The elements with these numbers, in this order. Throws BadInput for a negative number.
  [[nodiscard]] static Slice list(std::vector<std::int64_t> indices);

  [[nodiscard]] bool is_list() const noexcept { return is_list_; }
  [[nodiscard]] std::int64_t elements() const noexcept { return elements_; }

  // Number of maximal runs of consecutive element numbers, in visiting order: 1 is "contiguous".
  [[nodiscard]] std::int64_t pieces() const;

  // Smallest element number and one past the largest; {0, 0} for an empty slice.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> bounds() const;

  // The box in canonical form, the same for equal boxes: dimensions of extent 1 are dropped, and adjacent dimensions
  // that form one run are joined. A single element and an empty slice have no dimensions. For a box only.
  [[nodiscard]] int dims() const noexcept { return dims_; }
  [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::span<const std::int64_t> extents() const noexcept {
    return {extents_.data(), static_cast<std::size_t>(dims_)};
  }
  [[nodiscard]] std::span<const std::int64_t> strides() const noexcept {
    return {strides_.data(), static_cast<std::size_t>(dims_)};
  }
  // For a list only.
  [[nodiscard]] std::span<const std::int64_t> indices() const noexcept { return indices_; }

  // Calls visit(offset, count) for each maximal run of consecutive elements, in order.
  template <class Visit>
  void for_each_run(Visit&& visit) const;

  // Returns the elements [first, last) of this slice, counted in its order: up to max(1, 2 * dims - 1) slices for a
  // box, one for a list, none if first == last. Throws BadInput unless 0 <= first <= last <= elements().
  [[nodiscard]] std::vector<Slice> cut(std::int64_t first, std::int64_t last) const;

  // Equal slices visit the same elements in the same order, whether box or list.
  friend bool operator==(const Slice& a, const Slice& b);

 private:
  std::int64_t offset_ = 0;
  std::int64_t elements_ = 0;
  std::array<std::int64_t, max_dims> extents_{};
  std::array<std::int64_t, max_dims> strides_{};
  std::vector<std::int64_t> indices_;
  int dims_ = 0;
  bool is_list_ = false;
};

template <class Visit>
void Slice::for_each_run(Visit&& visit) const {
  if (elements_ == 0) return;
  if (is_list_) {
    std::size_t begin = 0;
    for (std::size_t i = 1; i <= indices_.size(); ++i) {
      if (i < indices_.size() && indices_[i] == indices_[i - 1] + 1) continue;
      visit(indices_[begin], static_cast<std::int64_t>(i - begin));
      begin = i;
    }
    return;
  }
  const bool unit = dims_ > 0 && strides_[dims_ - 1] == 1;
  const std::int64_t run = unit ? extents_[dims_ - 1] : 1;
  const int outer = unit ? dims_ - 1 : dims_;
  std::array<std::int64_t, max_dims> index{};
  std::int64_t at = offset_;
  std::int64_t begin = offset_;
  std::int64_t count = run;
  for (;;) {
    int d = outer - 1;
    for (; d >= 0; --d) {
      at += strides_[d];
      if (++index[d] < extents_[d]) break;
      at -= strides_[d] * extents_[d];
      index[d] = 0;
    }
    if (d < 0) break;
    if (at == begin + count) {  // in boxes whose dimensions interleave, a carry may land right behind a run
      count += run;
    } else {
      visit(begin, count);
      begin = at;
      count = run;
    }
  }
  visit(begin, count);
}

}  // namespace onehop
