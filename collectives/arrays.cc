#include "collectives/arrays.h"

#include <algorithm>
#include <cstring>

namespace onehop::collectives::detail {

void Arrays::set(std::span<const Part> parts, std::int64_t element_bytes) {
  const auto is_in_place = [](const Part& part) { return part.source == part.result; };
  if (parts.size() == 1)
    return set(parts.front().source, parts.front().result, element_bytes, is_in_place(parts.front()));
  in_place_ = std::ranges::any_of(parts, is_in_place);
  element_bytes_ = element_bytes;
  parts_.assign(parts.begin(), parts.end());
  begins_.clear();
  std::int64_t begin = 0;
  for (const Part& part : parts) {
    begins_.push_back(begin);
    begin += part.elements;
  }
}

void Arrays::collect(const Range& range, std::byte* to) const {
  for_each(range, [&](const std::byte* source, std::byte*, std::int64_t length) {
    std::memcpy(to, source, index(length));
    to += length;
  });
}

void Arrays::distribute(const Range& range, const std::byte* from) const {
  for_each(range, [&](const std::byte*, std::byte* result, std::int64_t length) {
    std::memcpy(result, from, index(length));
    from += length;
  });
}

std::size_t Arrays::find(std::int64_t element) const {
  return index(std::upper_bound(begins_.begin(), begins_.end(), element) - begins_.begin() - 1);
}

bool Arrays::in_one_piece(const Range& range, std::size_t part) const {
  return range.last <= begins_[part] + parts_[part].elements;
}

const std::byte* Arrays::source_of_parts(const Range& range) const {
  const std::size_t i = find(range.first);
  return in_one_piece(range, i) ? parts_[i].source + (range.first - begins_[i]) * element_bytes_ : nullptr;
}

std::byte* Arrays::result_of_parts(const Range& range) const {
  const std::size_t i = find(range.first);
  return in_one_piece(range, i) ? parts_[i].result + (range.first - begins_[i]) * element_bytes_ : nullptr;
}

}  // namespace onehop::collectives::detail
