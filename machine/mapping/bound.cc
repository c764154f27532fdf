// The surface of n positions in d dimensions is at least twice the sum of their projections along the dimensions, as
// long as no line of them closes around a periodic dimension. Two bounds of that sum are used:
// - The projections p_1, ..., p_d satisfy p_1 * ... * p_d >= n^(d - 1) (Loomis and Whitney).
// - Among sets with equal bytes in all dimensions, a box that is as cubic as possible, with a layer of the same kind in
//   one dimension less on top, has the least surface (Ahlswede and Bezrukov).
// If a line closes around dimension i, every one of its D_i slices holds positions. With at most M of them in a slice,
// the surface is at least that of all slices, in one dimension less, and 2 * (M - n / D_i) for lines that do not close.
#include "machine/mapping/published.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

namespace onehop::detail {

namespace {

constexpr std::int64_t largest_closed = 128;  // positions of a host whose closed lines are examined

// Minimises the sum of weight[d] * p[d] over low[d] <= p[d] <= high[d] with a product of at least `target`.
struct Projections {
  std::vector<double> low;
  std::vector<double> high;
  std::vector<double> weight;
  double target = 1;
};

// The minimum over real numbers: p[d] = multiplier / weight[d] within the limits.
double relaxed_minimum(const Projections& p) {
  const auto at = [&](double multiplier, std::size_t d) {
    return p.weight[d] > 0 ? std::clamp(multiplier / p.weight[d], p.low[d], p.high[d]) : p.high[d];
  };
  double below = 0;
  double above = 0;
  for (std::size_t d = 0; d < p.low.size(); ++d) above = std::max(above, p.high[d] * p.weight[d]);
  for (int i = 0; i < 60; ++i) {
    const double middle = (below + above) / 2;
    double product = 1;
    for (std::size_t d = 0; d < p.low.size(); ++d) product *= at(middle, d);
    (product < p.target ? below : above) = middle;
  }
  double sum = 0;
  for (std::size_t d = 0; d < p.low.size(); ++d) sum += p.weight[d] * at(below, d);
  return sum * (1 - 1e-12);
}

// The minimum over integers in 2 or 3 dimensions.
double integer_minimum(const Projections& p) {
  double best = INFINITY;
  const auto last = [&](double sum, double product) {
    const double needed = std::max(p.low.back(), std::ceil(p.target / product));
    if (needed <= p.high.back()) best = std::min(best, sum + p.weight.back() * needed);
  };
  double a = p.low[0];
  while (a <= p.high[0] && p.weight[0] * a < best) {
    if (p.low.size() == 2) {
      last(p.weight[0] * a, a);
    } else {
      double b = p.low[1];
      while (b <= p.high[1] && p.weight[0] * a + p.weight[1] * b < best) {
        last(p.weight[0] * a + p.weight[1] * b, a * b);
        ++b;
      }
    }
    ++a;
  }
  return best;
}

// Faces of the most compact set of `size` positions in `dims` dimensions.
std::int64_t compact_surface(std::int64_t size, std::size_t dims) {
  if (size == 0 || dims == 0) return 0;
  if (dims == 1) return 2;
  std::int64_t edge = 1;
  const auto volume = [&](std::int64_t longer) {  // of a box with `longer` edges of edge + 1, and edges of `edge`
    std::int64_t product = 1;
    for (std::size_t d = 0; d < dims && product <= size; ++d) {
      product *= static_cast<std::int64_t>(d) < longer ? edge + 1 : edge;
    }
    return product;
  };
  const auto all = static_cast<std::int64_t>(dims);
  while (volume(all) <= size) ++edge;
  std::int64_t longer = 0;
  while (volume(longer + 1) <= size) ++longer;
  const std::int64_t box = volume(longer);
  const std::int64_t faces = 2 * (longer * (box / (edge + 1)) + (all - longer) * (box / edge));
  return faces + compact_surface(size - box, dims - 1);
}

// Tables of the least surface of a set within some of the grid's dimensions, given as a set of bits.
class LeastSurface {
 public:
  explicit LeastSurface(const GridShape& shape) : shape_(shape) {
    for (std::size_t d = 0; d < shape.dims(); ++d) {
      if (shape.extents()[d] == 1) continue;  // without neighbours
      all_ |= 1U << d;
      if (shape.periodic(d)) periodic_ |= 1U << d;
      weight_ = std::max(weight_, shape.bytes()[d]);
    }
    for (std::size_t d = 0; d < shape.dims(); ++d) {
      uniform_ = uniform_ && (shape.extents()[d] == 1 || shape.bytes()[d] == weight_);
    }
  }

  // The bound for one host; nothing where only a poor one is known.
  [[nodiscard]] std::optional<double> of(std::int64_t size, bool few_sizes) {
    const double open = free_surface(all_, size, shape_.dims() <= 3 && size <= 1024 && few_sizes);
    if (!can_close(size)) return open;
    if (size > largest_closed) return std::nullopt;
    const double closed = table(all_, size)[static_cast<std::size_t>(size)];
    // In 3 dimensions and more the bound with closed lines is far from what is possible.
    if (std::popcount(all_) > 2 && closed < 0.9 * open) return std::nullopt;
    return std::min(open, closed);
  }

 private:
  // Whether a line of so many positions can close around the grid.
  [[nodiscard]] bool can_close(std::int64_t size) const {
    for (std::size_t d = 0; d < shape_.dims(); ++d) {
      if ((periodic_ >> d & 1U) != 0 && shape_.extents()[d] <= size) return true;
    }
    return false;
  }

  // Without closed lines.
  [[nodiscard]] double free_surface(unsigned mask, std::int64_t size, bool exact) const {
    Projections p;
    std::int64_t positions = 1;
    for (std::size_t d = 0; d < shape_.dims(); ++d) positions *= (mask >> d & 1U) != 0 ? shape_.extents()[d] : 1;
    for (std::size_t d = 0; d < shape_.dims(); ++d) {
      if ((mask >> d & 1U) == 0) continue;
      const std::int64_t extent = shape_.extents()[d];
      const std::int64_t layers = (size + extent - 1) / extent;
      p.low.push_back(static_cast<double>(layers));
      p.high.push_back(static_cast<double>(std::min(size, positions / extent)));
      p.weight.push_back(static_cast<double>(shape_.bytes()[d]));
      if (p.low.size() > 1) p.target *= static_cast<double>(size);
    }
    const std::size_t dims = p.low.size();
    if (dims == 0) return 0;
    if (dims == 1) return 2 * p.weight[0];
    const double sum = exact && dims <= 3 ? integer_minimum(p) : relaxed_minimum(p);
    const double compact =
        uniform_ ? static_cast<double>(compact_surface(size, dims)) * static_cast<double>(weight_) : 0;
    return std::max(2 * sum, compact);
  }

  // Entry a: at least the surface of a positions, with closed lines or without, for a up to `size`.
  [[nodiscard]] const std::vector<double>& table(unsigned mask, std::int64_t size) {
    std::vector<double>& entries = tables_[mask];
    if (entries.empty()) entries.push_back(0);
    while (std::ssize(entries) <= size) {
      const auto count = static_cast<std::int64_t>(entries.size());
      double least = free_surface(mask, count, false);
      for (std::size_t d = 0; d < shape_.dims(); ++d) {
        if ((mask & periodic_ & 1U << d) == 0 || shape_.extents()[d] > count) continue;
        least = std::min(least, closed_surface(mask & ~(1U << d), d, count));
      }
      entries.push_back(least);
    }
    return entries;
  }

  // With a line that closes around dimension d; `rest` are the other dimensions.
  [[nodiscard]] double closed_surface(unsigned rest, std::size_t d, std::int64_t count) {
    const auto slices = static_cast<double>(shape_.extents()[d]);
    const double mean = static_cast<double>(count) / slices;
    const std::vector<double>& slice = table(rest, count);
    double chord = INFINITY;  // the convex minorant of the slices' surfaces at their mean
    double least = INFINITY;
    for (std::int64_t most = 1; most <= count - shape_.extents()[d] + 1; ++most) {
      const auto high = static_cast<double>(most);
      if (high < mean) continue;
      for (std::int64_t low = 1; low <= most && static_cast<double>(low) <= mean; ++low) {
        const double part = low == most ? 0 : (mean - static_cast<double>(low)) / (high - static_cast<double>(low));
        chord = std::min(
            chord, slice[static_cast<std::size_t>(low)] * (1 - part) + slice[static_cast<std::size_t>(most)] * part);
      }
      least = std::min(least, slices * chord + 2 * static_cast<double>(shape_.bytes()[d]) * (high - mean));
    }
    return least;
  }

  const GridShape& shape_;
  unsigned all_ = 0;
  unsigned periodic_ = 0;
  std::int64_t weight_ = 0;
  bool uniform_ = true;
  std::map<unsigned, std::vector<double>> tables_;
};

}  // namespace

std::optional<std::int64_t> surface_bound(const GridShape& shape, Sizes sizes) {
  std::map<std::int64_t, std::int64_t> count;
  for (const std::int64_t size : sizes) {
    if (size > 0) ++count[size];
  }
  LeastSurface least(shape);
  double total = 0;
  for (const auto& [size, hosts] : count) {
    if (size == shape.positions()) return 0;
    const std::optional<double> surface = least.of(size, count.size() <= 16);
    if (!surface) return std::nullopt;
    total += std::ceil(*surface - 1e-6) * static_cast<double>(hosts);
  }
  if (total > 0x1p50) total *= 1 - 1e-12;  // the sums above are rounded
  std::int64_t rim = 0;
  for (std::size_t d = 0; d < shape.dims(); ++d) {
    if (shape.extents()[d] == 1 || shape.periodic(d)) continue;
    rim += 2 * (shape.positions() / shape.extents()[d]) * shape.bytes()[d];
  }
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(total) - rim);
}

}  // namespace onehop::detail
