#include "onehop/slice.h"

#include <algorithm>
#include <limits>
#include <string>

#include "onehop/error.h"
#include "src/base/checked.h"
#include "src/base/text.h"

namespace onehop {

using detail::checked_add;
using detail::checked_multiply;

namespace {

constexpr const char* element_number = "an element number";

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t result = 1;
  for (const std::int64_t extent : extents) result *= extent;
  return result;
}

void check_dims(std::size_t dims, std::size_t other, const char* names) {
  if (dims > Slice::max_dims) {
    throw BadInput("slice: expected at most " + std::to_string(Slice::max_dims) + " dimensions, found " +
                   std::to_string(dims));
  }
  if (dims != other) {
    throw BadInput(std::string("slice: expected ") + names + " of equal length, found " + std::to_string(dims) +
                   " and " + std::to_string(other));
  }
}

}  // namespace

Slice Slice::range(std::int64_t offset, std::int64_t count) {
  const std::int64_t one = 1;
  return box(offset, {&count, 1}, {&one, 1});
}

Slice Slice::box(std::int64_t offset, std::span<const std::int64_t> extents, std::span<const std::int64_t> strides) {
  check_dims(extents.size(), strides.size(), "extents and strides");
  std::int64_t elements = 1;
  bool empty = false;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] < 0) {
      throw BadInput("slice: expected extents of 0 or more, found " + std::to_string(extents[d]) + " in dimension " +
                     std::to_string(d));
    }
    empty = empty || extents[d] == 0;
  }
  if (empty) return {};

  Slice box;
  box.offset_ = offset;
  std::int64_t lowest = offset;
  std::int64_t highest = checked_add(offset, 1, element_number);
  for (std::size_t d = 0; d < extents.size(); ++d) {
    elements = checked_multiply(elements, extents[d], "the number of elements of a slice");
    if (extents[d] == 1) continue;
    // Includes one step beyond the box, so that for_each_run cannot overflow either.
    const std::int64_t span = checked_multiply(strides[d], extents[d], element_number);
    std::int64_t& end = span < 0 ? lowest : highest;
    end = checked_add(end, span, element_number);
    if (span < 0) lowest -= strides[d];
    // Dimensions are added slowest first, so the last one kept is adjacent to this one.
    if (box.dims_ > 0 && box.strides_[box.dims_ - 1] == span) {
      box.extents_[box.dims_ - 1] *= extents[d];
      box.strides_[box.dims_ - 1] = strides[d];
    } else {
      box.extents_[box.dims_] = extents[d];
      box.strides_[box.dims_] = strides[d];
      ++box.dims_;
    }
  }
  if (lowest < 0) {
    throw BadInput("slice: expected element numbers of 0 or more, found " + std::to_string(lowest) +
                   " as the smallest: raise the offset (" + std::to_string(offset) + ") or check the strides");
  }
  box.elements_ = elements;
  return box;
}

Slice Slice::subarray(std::span<const std::int64_t> shape, std::span<const std::int64_t> start,
                      std::span<const std::int64_t> extents) {
  check_dims(shape.size(), start.size(), "shape and start");
  check_dims(shape.size(), extents.size(), "shape and extents");
  std::array<std::int64_t, max_dims> strides{};
  std::int64_t offset = 0;
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (start[d] < 0 || extents[d] < 0 || extents[d] > shape[d] || start[d] > shape[d] - extents[d]) {
      throw BadInput("slice: expected a region inside the array, found start " + std::to_string(start[d]) +
                     " and extent " + std::to_string(extents[d]) + " in dimension " + std::to_string(d) +
                     ", which has " + base::counted(shape[d], "element"));
    }
    strides[d] = stride;
    offset = checked_add(offset, checked_multiply(start[d], stride, element_number), element_number);
    stride = checked_multiply(stride, std::max<std::int64_t>(shape[d], 1), "the number of elements of an array");
  }
  return box(offset, extents, {strides.data(), shape.size()});
}

Slice Slice::list(std::vector<std::int64_t> indices) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] == std::numeric_limits<std::int64_t>::max()) {
      throw BadInput("slice: expected element numbers from 0 to 2^63 - 2, found " + std::to_string(indices[i]) +
                     " at index " + std::to_string(i) + " of the list");
    }
  }
  Slice list;
  list.is_list_ = true;
  list.elements_ = static_cast<std::int64_t>(indices.size());
  list.indices_ = std::move(indices);
  return list;
}

std::int64_t Slice::pieces() const {
  if (elements_ == 0) return 0;
  if (is_list_) {
    std::int64_t pieces = 1;
    for (std::size_t i = 1; i < indices_.size(); ++i) pieces += indices_[i] != indices_[i - 1] + 1;
    return pieces;
  }
  // Every step to the next element is a carry into some dimension d, and all carries into d jump by the same distance.
  std::int64_t pieces = 1;
  std::int64_t rewind = 0;         // distance that the faster dimensions go back in a carry
  std::int64_t outer = elements_;  // number of times that dimension d is traversed
  for (int d = dims_ - 1; d >= 0; --d) {
    outer /= extents_[d];
    if (strides_[d] - rewind != 1) pieces += outer * (extents_[d] - 1);
    rewind += strides_[d] * (extents_[d] - 1);
  }
  return pieces;
}

std::pair<std::int64_t, std::int64_t> Slice::bounds() const {
  if (elements_ == 0) return {0, 0};
  if (is_list_) {
    const auto [smallest, largest] = std::minmax_element(indices_.begin(), indices_.end());
    return {*smallest, *largest + 1};
  }
  std::int64_t first = offset_;
  std::int64_t last = offset_;
  for (int d = 0; d < dims_; ++d) {
    (strides_[d] < 0 ? first : last) += strides_[d] * (extents_[d] - 1);
  }
  return {first, last + 1};
}

std::vector<Slice> Slice::cut(std::int64_t first, std::int64_t last) const {
  if (first < 0 || last < first || last > elements_) {
    throw BadInput("slice: expected a cut inside [0, " + std::to_string(elements_) + "), found [" +
                   std::to_string(first) + ", " + std::to_string(last) + ")");
  }
  if (first == last) return {};
  if (first == 0 && last == elements_) return {*this};
  if (is_list_) return {list({indices_.begin() + first, indices_.begin() + last})};

  std::vector<Slice> parts;
  const auto add = [&](int d, std::int64_t offset, std::int64_t extent) {
    std::array<std::int64_t, max_dims> kept = extents_;
    kept[d] = extent;
    const auto dims = static_cast<std::size_t>(dims_ - d);
    parts.push_back(box(offset, {kept.data() + d, dims}, {strides_.data() + d, dims}));
  };
  // Appends the elements [from, to) of the box that dimensions d, d + 1, ... span at `offset`.
  const auto append = [&](auto&& self, int d, std::int64_t offset, std::int64_t from, std::int64_t to) -> void {
    if (from == to) return;
    const std::int64_t inner = product(extents().subspan(static_cast<std::size_t>(d) + 1));
    std::int64_t whole_from = from / inner;
    const std::int64_t whole_to = to / inner;
    if (whole_from == whole_to) {
      return self(self, d + 1, offset + whole_from * strides_[d], from % inner, to % inner);
    }
    if (from % inner != 0) {
      self(self, d + 1, offset + whole_from * strides_[d], from % inner, inner);
      ++whole_from;
    }
    if (whole_to > whole_from) add(d, offset + whole_from * strides_[d], whole_to - whole_from);
    if (to % inner != 0) self(self, d + 1, offset + whole_to * strides_[d], 0, to % inner);
  };
  append(append, 0, offset_, first, last);
  return parts;
}

bool operator==(const Slice& a, const Slice& b) {
  if (a.elements_ != b.elements_) return false;
  if (a.elements_ == 0) return true;
  if (a.is_list_ && b.is_list_) return a.indices_ == b.indices_;
  if (!a.is_list_ && !b.is_list_) {
    return a.offset_ == b.offset_ && std::ranges::equal(a.extents(), b.extents()) &&
           std::ranges::equal(a.strides(), b.strides());
  }
  const Slice& box = a.is_list_ ? b : a;
  auto index = (a.is_list_ ? a : b).indices_.begin();
  bool same = true;
  box.for_each_run([&](std::int64_t begin, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) same = (*index++ == begin + i) && same;
  });
  return same;
}

}  // namespace onehop
