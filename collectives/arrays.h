// The arrays of a collective operation, and ranges of their elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/collectives/collectives.h"

namespace onehop::collectives::detail {

[[nodiscard]] inline std::size_t index(std::int64_t value) noexcept { return static_cast<std::size_t>(value); }

// Elements [first, last) of an array.
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  [[nodiscard]] std::int64_t elements() const noexcept { return last - first; }
};

// The memory of an operation: one source and one result, or several arrays that the operation treats as one contiguous
// array.
class Arrays {
 public:
  // `in_place`: the two overlap.
  void set(const std::byte* source, std::byte* result, std::int64_t element_bytes, bool in_place) noexcept {
    element_bytes_ = element_bytes;
    in_place_ = in_place;
    source_ = source;
    result_ = result;
    begins_.clear();
  }
  void set(std::span<const Part> parts, std::int64_t element_bytes);

  // Whether the result, or a part of it, takes the place of the source.
  [[nodiscard]] bool in_place() const noexcept { return in_place_; }

  // Calls visit(source, result, bytes) for each piece of a range.
  template <class Visit>
  void for_each(const Range& range, Visit&& visit) const {
    if (begins_.empty()) {
      const std::int64_t at = range.first * element_bytes_;
      if (range.elements() > 0) visit(source_ + at, result_ + at, range.elements() * element_bytes_);
      return;
    }
    std::int64_t first = range.first;
    for (std::size_t i = find(first); first < range.last; ++i) {
      const Part& part = parts_[i];
      const std::int64_t end = begins_[i] + part.elements < range.last ? begins_[i] + part.elements : range.last;
      const std::int64_t at = (first - begins_[i]) * element_bytes_;
      if (end > first) visit(part.source + at, part.result + at, (end - first) * element_bytes_);
      first = end > first ? end : first;
    }
  }

  // Copy the source of a range to one place, and the result of a range from one place.
  void collect(const Range& range, std::byte* to) const;
  void distribute(const Range& range, const std::byte* from) const;

  // The start of a range that lies in one array, else null.
  [[nodiscard]] const std::byte* source(const Range& range) const {
    return begins_.empty() ? source_ + range.first * element_bytes_ : source_of_parts(range);
  }
  [[nodiscard]] std::byte* result(const Range& range) const {
    return begins_.empty() ? result_ + range.first * element_bytes_ : result_of_parts(range);
  }

 private:
  [[nodiscard]] const std::byte* source_of_parts(const Range& range) const;
  [[nodiscard]] std::byte* result_of_parts(const Range& range) const;
  [[nodiscard]] std::size_t find(std::int64_t element) const;
  [[nodiscard]] bool in_one_piece(const Range& range, std::size_t part) const;

  std::int64_t element_bytes_ = 1;
  bool in_place_ = false;
  const std::byte* source_ = nullptr;
  std::byte* result_ = nullptr;
  std::vector<Part> parts_;
  std::vector<std::int64_t> begins_;  // of the parts; empty: one source and one result
};

}  // namespace onehop::collectives::detail
