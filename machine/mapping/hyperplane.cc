// The hyperplane algorithm cuts the grid in two, again and again, by planes that leave both parts a multiple of the
// ranks per host, until a part has two hosts or one.
#include <algorithm>
#include <numeric>

#include "machine/mapping/published.h"

namespace onehop::detail {

namespace {

class Hyperplane {
 public:
  Hyperplane(const GridShape& shape, std::int64_t per_host) : shape_(shape), per_host_(per_host) {}

  [[nodiscard]] std::vector<int> order() {
    split(whole(shape_));
    return std::move(order_);
  }

 private:
  // The dimension to cut first: few bytes cross the plane, and many positions lie along it.
  [[nodiscard]] std::vector<std::size_t> preferred(const Box& box) const {
    std::vector<std::size_t> dims(shape_.dims());
    std::iota(dims.begin(), dims.end(), std::size_t{0});
    std::ranges::stable_sort(dims, [&](std::size_t a, std::size_t b) {
      const std::int64_t bytes_a = shape_.bytes()[a];
      const std::int64_t bytes_b = shape_.bytes()[b];
      return bytes_a != bytes_b ? bytes_a < bytes_b : box.extent(a) > box.extent(b);
    });
    return dims;
  }

  // The layers in the lower part: as near to the middle as whole hosts allow. 0: there is no such plane.
  [[nodiscard]] std::int64_t lower_layers(const Box& box, std::size_t d) const {
    const std::int64_t layer = box.volume() / box.extent(d);
    for (std::int64_t layers = box.extent(d) / 2; layers > 0; --layers) {
      if (layer * layers % per_host_ != 0) continue;
      // The smaller part is the one at the rim of the grid.
      const bool at_upper_rim = box.low[d] + box.extent(d) / 2 >= shape_.extents()[d] / 2;
      return at_upper_rim ? box.extent(d) - layers : layers;
    }
    return 0;
  }

  void split(const Box& box) {
    const std::vector<std::size_t> dims = preferred(box);
    if (box.volume() > 2 * per_host_) {
      for (const std::size_t d : dims) {
        const std::int64_t layers = lower_layers(box, d);
        if (layers == 0) continue;
        Box lower = box;
        Box upper = box;
        lower.high[d] = upper.low[d] = box.low[d] + layers;
        split(lower);
        split(upper);
        return;
      }
    }
    append_box(shape_, box, dims, order_);
  }

  const GridShape& shape_;
  std::int64_t per_host_;
  std::vector<int> order_;
};

}  // namespace

HostAt hyperplane(const GridShape& shape, Sizes sizes) {
  // Hosts of unequal sizes count as hosts of their mean size, reduced until it divides the grid.
  const auto used = std::ranges::count_if(sizes, [](std::int64_t size) { return size > 0; });
  std::int64_t per_host = std::max<std::int64_t>(shape.positions() / used, 1);
  while (shape.positions() % per_host != 0) --per_host;
  return fill_hosts(Hyperplane(shape, per_host).order(), sizes);
}

}  // namespace onehop::detail
