// Stencil strips cut the grid into strips that are as high and as deep as the ideal box of a host, and run along the
// longest dimension. Hosts take consecutive positions of a way through all strips, which turns back at the end of each.
#include <algorithm>
#include <numeric>

#include "machine/mapping/published.h"

namespace onehop::detail {

namespace {

// The strips of one dimension: where each begins, and the end of the last.
std::vector<std::int64_t> borders(std::int64_t extent, std::int64_t height) {
  height = std::clamp<std::int64_t>(height, 1, extent);
  const std::int64_t strips = extent / height;
  std::vector<std::int64_t> ends{0};
  for (std::int64_t i = 0; i < strips; ++i) {
    ends.push_back(ends.back() + extent / strips + (i < extent % strips ? 1 : 0));
  }
  return ends;
}

class StripWalk {
 public:
  StripWalk(const GridShape& shape, std::size_t run, std::span<const std::int64_t> heights) : shape_(shape), run_(run) {
    for (std::size_t d = 0; d < shape.dims(); ++d) {
      if (d == run) continue;
      dims_.push_back(d);
      borders_.push_back(borders(shape.extents()[d], heights[d]));
    }
    reversed_.assign(dims_.size(), false);
    order_.reserve(static_cast<std::size_t>(shape.positions()));
  }

  [[nodiscard]] std::vector<int> order() {
    Box box = whole(shape_);
    visit(0, false, box);
    return std::move(order_);
  }

 private:
  // Visits the strips of dims_[k] and below, forwards or backwards; every other strip turns the ways inside it.
  void visit(std::size_t k, bool reversed, Box& box) {
    if (k == dims_.size()) {
      walk(reversed, box);
      return;
    }
    const std::size_t d = dims_[k];
    const std::size_t strips = borders_[k].size() - 1;
    reversed_[k] = reversed;
    for (std::size_t i = 0; i < strips; ++i) {
      const std::size_t strip = reversed ? strips - 1 - i : i;
      box.low[d] = borders_[k][strip];
      box.high[d] = borders_[k][strip + 1];
      visit(k + 1, reversed != (strip % 2 == 1), box);
    }
    box.low[d] = 0;
    box.high[d] = shape_.extents()[d];
  }

  // Appends one strip, slice by slice.
  void walk(bool reversed, const Box& box) {
    for (std::int64_t i = 0; i < box.extent(run_); ++i) {
      Box slice = box;
      slice.low[run_] = reversed ? box.high[run_] - 1 - i : box.low[run_] + i;
      slice.high[run_] = slice.low[run_] + 1;
      const std::size_t begin = order_.size();
      append_box(shape_, slice, dims_, order_);
      mirror(slice, begin);
    }
  }

  // Mirrors the slice at the end of the order in the dimensions that are walked backwards.
  void mirror(const Box& slice, std::size_t begin) {
    for (std::size_t k = 0; k < dims_.size(); ++k) {
      if (!reversed_[k]) continue;
      const std::size_t d = dims_[k];
      const std::int64_t stride = shape_.strides()[d];
      const std::int64_t ends = slice.low[d] + slice.high[d] - 1;
      for (std::size_t i = begin; i < order_.size(); ++i) {
        const std::int64_t at = order_[i] / stride % shape_.extents()[d];
        order_[i] += static_cast<int>((ends - 2 * at) * stride);
      }
    }
  }

  const GridShape& shape_;
  std::size_t run_;
  std::vector<std::size_t> dims_;  // all but `run`
  std::vector<std::vector<std::int64_t>> borders_;
  std::vector<bool> reversed_;
  std::vector<int> order_;
};

}  // namespace

std::vector<int> strip_order(const GridShape& shape, std::size_t run, std::span<const std::int64_t> heights) {
  return StripWalk(shape, run, heights).order();
}

// With k dimensions left, the edges e_d of the box with the least surface satisfy e_d = bytes_d * (volume / product of
// bytes)^(1/k). The largest integer below is found without floating-point numbers, so that all ranks find the same one.
std::int64_t ideal_edge(const GridShape& shape, std::span<const std::size_t> dims, std::size_t d, std::int64_t volume) {
  std::int64_t largest = 1;
  for (const std::size_t other : dims) largest = std::max(largest, shape.bytes()[other]);
  // Ratios of bytes to 1 in 64 are enough, and keep the powers below within 128 bits.
  const auto weight = [&](std::size_t other) {
    return std::max<std::int64_t>(1,
                                  largest > 64 ? shape.bytes()[other] / ((largest + 63) / 64) : shape.bytes()[other]);
  };
  __extension__ using Wide = unsigned __int128;
  const Wide limit = ~Wide{0} >> 1;
  Wide target = static_cast<Wide>(volume);  // edge^k * product of weights <= volume * weight_d^k
  for (std::size_t i = 0; i < dims.size(); ++i) target *= static_cast<Wide>(weight(d));
  std::int64_t edge = 1;
  while (edge < volume) {
    Wide power = 1;
    for (const std::size_t other : dims) {
      const Wide factor = static_cast<Wide>(edge + 1) * static_cast<Wide>(weight(other));
      power = power > limit / factor ? limit : power * factor;
    }
    if (power > target) break;
    ++edge;
  }
  return edge;
}

HostAt strips(const GridShape& shape, Sizes sizes) {
  const auto used = std::ranges::count_if(sizes, [](std::int64_t size) { return size > 0; });
  const auto run = static_cast<std::size_t>(std::ranges::max_element(shape.extents()) - shape.extents().begin());
  std::vector<std::size_t> left;
  for (std::size_t d = 0; d < shape.dims(); ++d) {
    if (d != run) left.push_back(d);
  }
  left.push_back(run);
  std::int64_t volume = std::max<std::int64_t>(shape.positions() / used, 1);
  std::vector<std::int64_t> heights(shape.dims(), 1);
  while (left.size() > 1) {
    const std::size_t d = left.front();
    heights[d] = std::min(ideal_edge(shape, left, d, volume), shape.extents()[d]);
    const std::int64_t strips = shape.extents()[d] / heights[d];
    heights[d] = shape.extents()[d] / strips;
    volume = std::max<std::int64_t>(volume / heights[d], 1);
    left.erase(left.begin());
  }
  return fill_hosts(strip_order(shape, run, heights), sizes);
}

}  // namespace onehop::detail
