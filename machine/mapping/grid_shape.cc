#include "machine/mapping/grid_shape.h"

#include <string>

#include "onehop/error.h"
#include "src/base/checked.h"
#include "src/base/text.h"

namespace onehop {

namespace detail {

namespace {

constexpr std::size_t max_dims = 6;

std::string text(std::int64_t number) { return std::to_string(number); }

void check_length(std::size_t found, std::size_t dims, const char* what) {
  if (found == 0 || found == dims) return;
  throw BadInput("map: expected " + std::string(what) + " for each of " + base::counted(dims, "dimension") +
                 " of the grid, found " + std::to_string(found));
}

}  // namespace

GridShape::GridShape(const Grid& grid) : extents_(grid.extents), bytes_(grid.bytes), periodic_(grid.periodic) {
  if (extents_.empty() || extents_.size() > max_dims) {
    throw BadInput("map: expected a grid of 1 to " + std::to_string(max_dims) + " dimensions, found " +
                   std::to_string(extents_.size()));
  }
  check_length(periodic_.size(), dims(), "periodic");
  check_length(bytes_.size(), dims(), "the bytes of a message");
  if (periodic_.empty()) periodic_.assign(dims(), false);
  if (bytes_.empty()) bytes_.assign(dims(), 1);
  strides_.assign(dims(), 1);
  for (std::size_t d = dims(); d-- > 0;) {
    if (extents_[d] < 1) {
      throw BadInput("map: expected a grid of 1 rank or more in dimension " + std::to_string(d) + ", found " +
                     text(extents_[d]));
    }
    strides_[d] = positions_;
    positions_ = checked_multiply(positions_, extents_[d], "the number of ranks of the grid");
    if (positions_ > max_ranks) {
      throw BadInput("map: expected a grid of at most " + text(max_ranks) + " ranks, found " + text(positions_) +
                     " or more");
    }
  }
  for (const std::int64_t bytes : bytes_) {
    if (bytes < 0) throw BadInput("map: expected messages of 0 bytes or more, found " + text(bytes));
    (void)checked_multiply(bytes, 4 * static_cast<std::int64_t>(dims()) * positions_,
                           "4 times the bytes of all messages");
  }
}

Box whole(const GridShape& shape) {
  return {std::vector<std::int64_t>(shape.dims(), 0), {shape.extents().begin(), shape.extents().end()}};
}

void append_box(const GridShape& shape, const Box& box, std::span<const std::size_t> dims, std::vector<int>& order) {
  std::vector<std::int64_t> at = box.low;
  const std::int64_t volume = box.volume();
  std::int64_t position = 0;
  for (std::size_t d = 0; d < at.size(); ++d) position += at[d] * shape.strides()[d];
  for (std::int64_t i = 0; i < volume; ++i) {
    order.push_back(static_cast<int>(position));
    for (std::size_t k = dims.size(); k-- > 0;) {
      const std::size_t d = dims[k];
      position += shape.strides()[d];
      if (++at[d] < box.high[d]) break;
      position -= box.extent(d) * shape.strides()[d];
      at[d] = box.low[d];
    }
  }
}

}  // namespace detail

std::int64_t Grid::positions() const { return detail::GridShape(*this).positions(); }

}  // namespace onehop
