#include <algorithm>
#include <numeric>
#include <tuple>

#include "machine/mapping/published.h"

namespace onehop::detail {

namespace {

// Chooses the edges of equal boxes, whose product is `volume`, among the divisors of the extents.
class BoxChoice {
 public:
  BoxChoice(const GridShape& shape, std::int64_t volume) : shape_(shape), edges_(shape.dims(), 1) { choose(0, volume); }

  // All with the least bytes; empty: no box tiles the grid.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> take() { return std::move(best_); }

 private:
  void choose(std::size_t d, std::int64_t volume) {
    if (d + 1 == shape_.dims()) {
      if (shape_.extents()[d] % volume != 0) return;
      edges_[d] = volume;
      compare();
      return;
    }
    const std::int64_t most = std::min(volume, shape_.extents()[d]);
    for (std::int64_t edge = 1; edge <= most; ++edge) {
      if (volume % edge != 0 || shape_.extents()[d] % edge != 0) continue;
      edges_[d] = edge;
      choose(d + 1, volume / edge);
    }
  }

  void compare() {
    std::int64_t sum = 0;
    std::int64_t busiest = 0;
    const std::int64_t volume =
        std::accumulate(edges_.begin(), edges_.end(), std::int64_t{1}, [](auto a, auto b) { return a * b; });
    for (std::size_t d = 0; d < edges_.size(); ++d) {
      const std::int64_t boxes = shape_.extents()[d] / edges_[d];
      if (boxes == 1) continue;
      const std::int64_t planes = shape_.periodic(d) ? boxes : boxes - 1;
      const std::int64_t sides = shape_.periodic(d) || boxes > 2 ? 2 : 1;
      sum += 2 * planes * (shape_.positions() / shape_.extents()[d]) * shape_.bytes()[d];
      busiest += sides * (volume / edges_[d]) * shape_.bytes()[d];
    }
    if (!best_.empty() && std::tie(sum, busiest) > std::tie(sum_, busiest_)) return;
    if (std::tie(sum, busiest) != std::tie(sum_, busiest_)) best_.clear();
    std::tie(sum_, busiest_) = std::tie(sum, busiest);
    best_.push_back(edges_);
  }

  const GridShape& shape_;
  std::vector<std::int64_t> edges_;
  std::vector<std::vector<std::int64_t>> best_;
  std::int64_t sum_ = 0;
  std::int64_t busiest_ = 0;
};

class UnequalBoxes {
 public:
  UnequalBoxes(const GridShape& shape, Sizes sizes, std::span<const int> hosts) : shape_(shape), hosts_(hosts) {
    prefix_.push_back(0);
    for (const int host : hosts) prefix_.push_back(prefix_.back() + sizes[static_cast<std::size_t>(host)]);
    dims_.resize(shape.dims());
    std::iota(dims_.begin(), dims_.end(), std::size_t{0});
  }

  [[nodiscard]] std::optional<HostAt> build() {
    host_at_.assign(static_cast<std::size_t>(shape_.positions()), 0);
    if (!split(whole(shape_), 0, hosts_.size(), 0)) return std::nullopt;
    return std::move(host_at_);
  }

 private:
  struct Cut {
    std::int64_t bytes = 0;  // across the plane
    std::int64_t imbalance = 0;
    std::size_t dimension = 0;
    std::int64_t layers = 0;
    std::size_t hosts = 0;  // of hosts_, up to here, in the lower part
    friend auto operator<=>(const Cut&, const Cut&) = default;
  };

  [[nodiscard]] std::vector<Cut> cuts(const Box& box, std::size_t first, std::size_t last) const {
    std::vector<Cut> found;
    const std::int64_t volume = box.volume();
    for (std::size_t d = 0; d < shape_.dims(); ++d) {
      const std::int64_t layer = volume / box.extent(d);
      for (std::size_t k = first + 1; k < last; ++k) {
        const std::int64_t lower = prefix_[k] - prefix_[first];
        if (lower % layer != 0) continue;
        found.push_back({layer * shape_.bytes()[d], std::abs(volume - 2 * lower), d, lower / layer, k});
      }
    }
    std::ranges::sort(found);
    return found;
  }

  // The work is bounded: a map is wanted soon, and other candidates need no boxes.
  bool split(const Box& box, std::size_t first, std::size_t last, int depth) {
    work_ += (last - first) * shape_.dims();
    if (work_ > 3'000'000 || depth > 200) return false;
    if (last - first == 1) {
      std::vector<int> positions;
      append_box(shape_, box, dims_, positions);
      for (const int position : positions) host_at_[static_cast<std::size_t>(position)] = hosts_[first];
      return true;
    }
    for (const Cut& cut : cuts(box, first, last)) {
      Box lower = box;
      Box upper = box;
      lower.high[cut.dimension] = upper.low[cut.dimension] = box.low[cut.dimension] + cut.layers;
      if (split(lower, first, cut.hosts, depth + 1) && split(upper, cut.hosts, last, depth + 1)) return true;
    }
    return false;
  }

  const GridShape& shape_;
  std::span<const int> hosts_;
  std::vector<std::int64_t> prefix_;
  std::vector<std::size_t> dims_;
  HostAt host_at_;
  std::size_t work_ = 0;
};

}  // namespace

HostAt fill_hosts(std::span<const int> order, Sizes sizes) {
  HostAt host_at(order.size());
  std::size_t host = 0;
  std::int64_t left = sizes.front();
  for (const int position : order) {
    while (left == 0) left = sizes[++host];
    host_at[static_cast<std::size_t>(position)] = static_cast<int>(host);
    --left;
  }
  return host_at;
}

std::vector<std::vector<std::int64_t>> best_edges(const GridShape& shape, std::int64_t volume) {
  return BoxChoice(shape, volume).take();
}

std::optional<HostAt> best_box(const GridShape& shape, Sizes sizes) {
  std::int64_t size = 0;
  for (const std::int64_t each : sizes) {
    if (each != 0 && size != 0 && each != size) return std::nullopt;
    size = std::max(size, each);
  }
  const std::vector<std::vector<std::int64_t>> choices = best_edges(shape, size);
  if (choices.empty()) return std::nullopt;
  const std::vector<std::int64_t>& edges = choices.front();
  std::vector<int> hosts;
  for (std::size_t host = 0; host < sizes.size(); ++host) {
    if (sizes[host] > 0) hosts.push_back(static_cast<int>(host));
  }
  HostAt host_at;
  host_at.reserve(static_cast<std::size_t>(shape.positions()));
  std::vector<std::int64_t> at(shape.dims(), 0);
  for (std::int64_t p = 0; p < shape.positions(); ++p) {
    std::int64_t box = 0;
    for (std::size_t d = 0; d < shape.dims(); ++d) box = box * (shape.extents()[d] / edges[d]) + at[d] / edges[d];
    host_at.push_back(hosts[static_cast<std::size_t>(box)]);
    shape.advance(at);
  }
  return host_at;
}

std::optional<HostAt> unequal_boxes(const GridShape& shape, Sizes sizes) {
  std::vector<int> hosts;
  for (std::size_t host = 0; host < sizes.size(); ++host) {
    if (sizes[host] > 0) hosts.push_back(static_cast<int>(host));
  }
  if (auto found = UnequalBoxes(shape, sizes, hosts).build()) return found;
  std::ranges::stable_sort(hosts, std::ranges::greater{},
                           [&](int host) { return sizes[static_cast<std::size_t>(host)]; });
  return UnequalBoxes(shape, sizes, hosts).build();
}

}  // namespace onehop::detail
