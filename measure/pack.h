// Packing as a careful user would write it by hand: a list of rows made beforehand, then one loop over each row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "onehop/slice.h"

namespace onehop::measure {

// `count` elements from `offset` on, `stride` apart.
struct Row {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  std::int64_t stride = 1;
};

class Rows {
 public:
  Rows() = default;
  Rows(const Slice& slice, std::int64_t element_bytes) : element_bytes_(element_bytes), elements_(slice.elements()) {
    if (slice.is_list()) {
      slice.for_each_run([this](std::int64_t offset, std::int64_t count) { rows_.push_back({offset, count, 1}); });
    } else if (elements_ != 0) {
      add_box(slice);
    }
  }

  [[nodiscard]] std::int64_t bytes() const { return elements_ * element_bytes_; }

  // Gathers from the array; returns the end of the packed data.
  std::byte* pack(std::byte* to, const std::byte* array) const {
    for (const Row& row : rows_) {
      const std::byte* from = array + row.offset * element_bytes_;
      const std::int64_t bytes = row.count * element_bytes_;
      if (row.stride == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
      } else {
        copy_elements(to, element_bytes_, from, row.stride * element_bytes_, row.count);
      }
      to += bytes;
    }
    return to;
  }

  // Scatters to the array; returns the end of the data read.
  const std::byte* unpack(std::byte* array, const std::byte* from) const {
    for (const Row& row : rows_) {
      std::byte* to = array + row.offset * element_bytes_;
      const std::int64_t bytes = row.count * element_bytes_;
      if (row.stride == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
      } else {
        copy_elements(to, row.stride * element_bytes_, from, element_bytes_, row.count);
      }
      from += bytes;
    }
    return from;
  }

  // Whether the rows `there` have the same lengths, as the faces of a halo do, so that data can be copied directly.
  [[nodiscard]] bool congruent(const Rows& there) const {
    if (rows_.size() != there.rows_.size()) return false;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].count != there.rows_[i].count) return false;
    }
    return true;
  }
  void copy(std::byte* to, const Rows& there, const std::byte* from) const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      copy_elements(to + there.rows_[i].offset * element_bytes_, there.rows_[i].stride * element_bytes_,
                    from + rows_[i].offset * element_bytes_, rows_[i].stride * element_bytes_, rows_[i].count);
    }
  }

 private:
  void add_box(const Slice& box) {
    const int outer = box.dims() - 1;
    if (outer < 0) {
      rows_.push_back({box.offset(), 1, 1});
      return;
    }
    std::vector<std::int64_t> index(static_cast<std::size_t>(outer), 0);
    const auto inner = static_cast<std::size_t>(outer);
    for (std::int64_t at = box.offset();;) {
      rows_.push_back({at, box.extents()[inner], box.strides()[inner]});
      std::size_t d = inner;
      while (d-- > 0) {
        at += box.strides()[d];
        if (++index[d] < box.extents()[d]) break;
        at -= box.strides()[d] * box.extents()[d];
        index[d] = 0;
      }
      if (d == static_cast<std::size_t>(-1)) return;
    }
  }

  template <class Word>
  static void copy_words(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                         std::int64_t n) {
    for (; n > 0; --n, to += to_step, from += from_step) std::memcpy(to, from, sizeof(Word));
  }
  void copy_elements(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                     std::int64_t n) const {
    if (element_bytes_ == 8) {
      copy_words<std::uint64_t>(to, to_step, from, from_step, n);
    } else if (element_bytes_ == 4) {
      copy_words<std::uint32_t>(to, to_step, from, from_step, n);
    } else {
      for (; n > 0; --n, to += to_step, from += from_step)
        std::memcpy(to, from, static_cast<std::size_t>(element_bytes_));
    }
  }

  std::vector<Row> rows_;
  std::int64_t element_bytes_ = 8;
  std::int64_t elements_ = 0;
};

}  // namespace onehop::measure
