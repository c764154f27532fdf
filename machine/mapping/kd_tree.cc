// The k-d tree halves the dimension with the most positions per byte until single positions remain. It needs no sizes:
// hosts take consecutive leaves.
#include "machine/mapping/published.h"

namespace onehop::detail {

namespace {

// Number of the longest dimension in units of its messages, dims() if every extent is 1. The first of equal ones.
std::size_t longest(const GridShape& shape, const Box& box) {
  std::size_t best = shape.dims();
  for (std::size_t d = 0; d < shape.dims(); ++d) {
    if (box.extent(d) <= 1) continue;
    if (best == shape.dims()) {
      best = d;
      continue;
    }
    __extension__ using Wide = unsigned __int128;
    const Wide here = static_cast<Wide>(box.extent(d)) * static_cast<Wide>(shape.bytes()[best]);
    const Wide there = static_cast<Wide>(box.extent(best)) * static_cast<Wide>(shape.bytes()[d]);
    if (here > there) best = d;
  }
  return best;
}

void halve(const GridShape& shape, Box& box, std::vector<int>& order) {
  const std::size_t d = longest(shape, box);
  if (d == shape.dims()) {
    std::int64_t position = 0;
    for (std::size_t i = 0; i < shape.dims(); ++i) position += box.low[i] * shape.strides()[i];
    order.push_back(static_cast<int>(position));
    return;
  }
  const std::int64_t low = box.low[d];
  const std::int64_t high = box.high[d];
  const std::int64_t middle = low + (high - low) / 2;
  box.high[d] = middle;
  halve(shape, box, order);
  box.high[d] = high;
  box.low[d] = middle;
  halve(shape, box, order);
  box.low[d] = low;
}

}  // namespace

HostAt kd_tree(const GridShape& shape, Sizes sizes) {
  std::vector<int> order;
  order.reserve(static_cast<std::size_t>(shape.positions()));
  Box box = whole(shape);
  halve(shape, box, order);
  return fill_hosts(order, sizes);
}

}  // namespace onehop::detail
