#include "machine/mapping/published.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace onehop::detail {

namespace {

struct StripChoice {
  std::int64_t distance = 0;  // from the ideal heights
  std::size_t run = 0;
  std::vector<std::int64_t> heights;
  friend auto operator<=>(const StripChoice&, const StripChoice&) = default;
};

// Every choice of heights near the ideal ones, the nearest first.
std::vector<StripChoice> strip_choices(const GridShape& shape, std::int64_t volume) {
  std::vector<std::size_t> all(shape.dims());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::int64_t reach = shape.dims() == 2 ? 8 : shape.dims() == 3 ? 2 : 1;
  std::vector<StripChoice> choices;
  for (std::size_t run = 0; run < shape.dims(); ++run) {
    std::vector<StripChoice> partial{{0, run, std::vector<std::int64_t>(shape.dims(), 1)}};
    for (std::size_t d = 0; d < shape.dims(); ++d) {
      if (d == run) continue;
      const std::int64_t ideal = ideal_edge(shape, all, d, volume);
      std::vector<StripChoice> longer;
      for (const StripChoice& choice : partial) {
        for (std::int64_t offset = -reach; offset <= reach; ++offset) {
          const std::int64_t height = ideal + offset;
          if (height < 1 || height > shape.extents()[d]) continue;
          StripChoice next = choice;
          next.heights[d] = height;
          next.distance += std::abs(offset);
          longer.push_back(std::move(next));
        }
        if (ideal - reach > shape.extents()[d]) {
          StripChoice next = choice;
          next.heights[d] = shape.extents()[d];
          longer.push_back(std::move(next));
        }
      }
      partial = std::move(longer);
    }
    choices.insert(choices.end(), partial.begin(), partial.end());
  }
  std::ranges::sort(choices);
  return choices;
}

// Gives positions[first, last) to the hosts [from, to), whose sizes add up to as many.
class Bisection {
 public:
  Bisection(const GridShape& shape, Sizes sizes)
      : shape_(shape), host_at_(static_cast<std::size_t>(shape.positions())) {
    prefix_.push_back(0);
    for (const std::int64_t size : sizes) prefix_.push_back(prefix_.back() + size);
    positions_.resize(host_at_.size());
    std::iota(positions_.begin(), positions_.end(), 0);
  }

  [[nodiscard]] HostAt build() {
    split(0, prefix_.size() - 1);
    return std::move(host_at_);
  }

 private:
  // The dimensions of the bounding box, the longest first.
  [[nodiscard]] std::vector<std::size_t> longest(std::span<const int> positions) const {
    std::vector<std::int64_t> extent(shape_.dims());
    for (std::size_t d = 0; d < shape_.dims(); ++d) {
      std::int64_t low = shape_.extents()[d];
      std::int64_t high = 0;
      for (const int position : positions) {
        const std::int64_t at = position / shape_.strides()[d] % shape_.extents()[d];
        low = std::min(low, at);
        high = std::max(high, at + 1);
      }
      extent[d] = high - low;
    }
    std::vector<std::size_t> dims(shape_.dims());
    std::iota(dims.begin(), dims.end(), std::size_t{0});
    std::ranges::stable_sort(dims, std::ranges::greater{}, [&](std::size_t d) { return extent[d]; });
    return dims;
  }

  void split(std::size_t from, std::size_t to) {
    const auto first = static_cast<std::size_t>(prefix_[from]);
    const auto positions = std::span(positions_).subspan(first, static_cast<std::size_t>(prefix_[to]) - first);
    if (positions.empty()) return;
    if (to - from == 1) {
      for (const int position : positions) host_at_[static_cast<std::size_t>(position)] = static_cast<int>(from);
      return;
    }
    const std::size_t middle = from + (to - from) / 2;
    const std::vector<std::size_t> dims = longest(positions);
    const auto key = [&](int position) {
      std::int64_t number = 0;
      for (const std::size_t d : dims) {
        number = number * shape_.extents()[d] + position / shape_.strides()[d] % shape_.extents()[d];
      }
      return number;
    };
    std::ranges::nth_element(positions, positions.begin() + (prefix_[middle] - prefix_[from]), {}, key);
    split(from, middle);
    split(middle, to);
  }

  const GridShape& shape_;
  std::vector<std::int64_t> prefix_;
  std::vector<int> positions_;
  HostAt host_at_;
};

}  // namespace

std::vector<HostAt> other_strips(const GridShape& shape, Sizes sizes, const Traffic& traffic,
                                 const HostDistance& distance, std::size_t most) {
  const auto used = std::ranges::count_if(sizes, [](std::int64_t size) { return size > 0; });
  const std::int64_t volume = std::max<std::int64_t>(shape.positions() / used, 1);
  const std::vector<StripChoice> choices = strip_choices(shape, volume);
  const std::int64_t work = shape.positions() * static_cast<std::int64_t>(shape.dims());
  const auto tries = static_cast<std::size_t>(std::clamp<std::int64_t>(6'000'000 / work, 6, 400));
  struct Found {
    std::pair<std::int64_t, std::int64_t> cost;
    HostAt host_at;
  };
  std::vector<Found> found;
  for (std::size_t i = 0; i < std::min(tries, choices.size()); ++i) {
    HostAt host_at = fill_hosts(strip_order(shape, choices[i].run, choices[i].heights), sizes);
    const MapCost cost = cost_of(traffic, distance, host_at);
    found.push_back({{cost.weighted_bytes, cost.busiest_host_bytes}, std::move(host_at)});
    std::ranges::stable_sort(found, {}, &Found::cost);
    if (found.size() > most) found.pop_back();
  }
  std::vector<HostAt> maps;
  for (Found& each : found) maps.push_back(std::move(each.host_at));
  return maps;
}

HostAt bisection(const GridShape& shape, Sizes sizes) { return Bisection(shape, sizes).build(); }

HostAt grow(const Traffic& traffic, Sizes sizes) {
  const int positions = traffic.positions();
  HostAt host_at(static_cast<std::size_t>(positions), -1);
  std::vector<std::int64_t> attraction(static_cast<std::size_t>(positions), 0);
  int next_free = 0;
  for (std::size_t host = 0; host < sizes.size(); ++host) {
    // Largest attraction first, then the smallest position. Entries that are out of date are dropped when they come up.
    std::priority_queue<std::pair<std::int64_t, int>> front;
    std::vector<int> touched;
    for (std::int64_t left = sizes[host]; left > 0; --left) {
      int chosen = -1;
      while (!front.empty() && chosen < 0) {
        const auto [value, negative] = front.top();
        front.pop();
        const int position = -negative;
        const auto p = static_cast<std::size_t>(position);
        if (host_at[p] < 0 && attraction[p] == value) chosen = position;
      }
      if (chosen < 0) {
        while (host_at[static_cast<std::size_t>(next_free)] >= 0) ++next_free;
        chosen = next_free;
      }
      host_at[static_cast<std::size_t>(chosen)] = static_cast<int>(host);
      for (const TrafficEdge& edge : traffic.of(chosen)) {
        const auto to = static_cast<std::size_t>(edge.to);
        if (host_at[to] >= 0) continue;
        attraction[to] += edge.both;
        touched.push_back(edge.to);
        front.emplace(attraction[to], -edge.to);
      }
    }
    for (const int position : touched) attraction[static_cast<std::size_t>(position)] = 0;
  }
  return host_at;
}

}  // namespace onehop::detail
