// A checked `Grid` with its defaults filled in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onehop/machine/mapping.h"

namespace onehop::detail {

class GridShape {
 public:
  // Throws BadInput.
  explicit GridShape(const Grid& grid);

  [[nodiscard]] std::size_t dims() const noexcept { return extents_.size(); }
  [[nodiscard]] std::int64_t positions() const noexcept { return positions_; }
  [[nodiscard]] std::span<const std::int64_t> extents() const noexcept { return extents_; }
  [[nodiscard]] std::span<const std::int64_t> strides() const noexcept { return strides_; }
  [[nodiscard]] std::span<const std::int64_t> bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool periodic(std::size_t d) const { return periodic_[d]; }

  // Moves coordinates to the next position in C order.
  void advance(std::span<std::int64_t> at) const {
    for (std::size_t d = dims(); d-- > 0;) {
      if (++at[d] < extents_[d]) return;
      at[d] = 0;
    }
  }

 private:
  std::vector<std::int64_t> extents_;
  std::vector<std::int64_t> strides_;
  std::vector<std::int64_t> bytes_;
  std::vector<bool> periodic_;
  std::int64_t positions_ = 1;
};

// A box of positions: [low, high) per dimension.
struct Box {
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;

  [[nodiscard]] std::int64_t extent(std::size_t d) const { return high[d] - low[d]; }
  [[nodiscard]] std::int64_t volume() const {
    std::int64_t volume = 1;
    for (std::size_t d = 0; d < low.size(); ++d) volume *= extent(d);
    return volume;
  }
};

[[nodiscard]] Box whole(const GridShape& shape);

// Appends the positions of a box. The dimension dims[0] runs slowest, the last one fastest.
void append_box(const GridShape& shape, const Box& box, std::span<const std::size_t> dims, std::vector<int>& order);

}  // namespace onehop::detail
