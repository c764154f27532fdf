// Every position v gets a price u(v). If g(n) is the least sum of leaving bytes and prices that n positions can have,
// all maps have at least sum of g(n) over the hosts - sum of u(v) over the grid between their hosts (a Lagrangian
// bound: every position is on exactly one host). A price of one message at open ends gives the surface bound of
// bound.cc; prices of 0 give the least boundary of sets within the box (Bollobas and Leader, "Edge-isoperimetric
// inequalities in the grid", Combinatorica 11 (1991)), thin dimensions included. Here u(v) is a sum of one price per
// dimension and coordinate, and is improved by a search.
//
// A bound of g comes from slices: let a set have a_i positions in slice i of dimension d. Slices i and i + 1 differ in
// |a_i - a_(i+1)| positions or more, each of which sends a message between them. So
//   g(n) >= min over a_1 + ... + a_k = n of sum of (h(a_i) + price_i * a_i) + bytes * sum of |a_i - a_(i+1)|,
// where h is the same bound in one dimension less. A periodic dimension has no prices. Moving all positions to the
// start of their lines along it (a compression) costs nothing then, so that the a_i do not increase, and the second sum
// is 2 * (a_1 - a_k).
#include "machine/mapping/slice_bound.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <vector>

#include "machine/mapping/as_index.h"
#include "machine/mapping/random.h"

namespace onehop::detail {

namespace {

// All numbers are integers, in eighths of the greatest common divisor of the messages' bytes; a float holds them
// exactly, and compilers use vectors of it.
constexpr std::int64_t eighths = 8;
constexpr std::int64_t exact = std::int64_t{1} << 24;
constexpr float impossible = 1e30F;
constexpr std::int64_t max_work = 40'000'000;  // entries of tables, in all
constexpr std::int64_t max_tries = 10'000;

struct Axis {
  std::int64_t extent = 1;
  std::int64_t bytes = 0;  // in units of their greatest common divisor
  bool periodic = false;
  std::vector<std::int64_t> price;  // of each coordinate, in eighths; empty if periodic
};

using Table = std::vector<float>;  // entry n: for n positions

// Row a, column s: the best choice of some slices, of which the last one has a positions, and all together s.
class Slices {
 public:
  Slices(std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns), entries_(as_index((rows + 1) * (columns + 1)), impossible) {}

  [[nodiscard]] float* row(std::int64_t a) { return entries_.data() + a * (columns_ + 1); }

  // Lets the last slice have fewer positions, or more too, at a cost of `step` each.
  void relax(float step, bool both) {
    for (std::int64_t a = rows_; a-- > 0;) lower(row(a), row(a + 1), step);
    for (std::int64_t a = 1; both && a <= rows_; ++a) lower(row(a), row(a - 1), step);
  }

  // Appends a slice with a positions to every row; cost[a] + price * a is added.
  void append(const Table& cost, float price) {
    for (std::int64_t a = 0; a <= rows_; ++a) {
      float* here = row(a);
      const float add = cost[as_index(a)] + price * static_cast<float>(a);
      for (std::int64_t s = columns_; s >= a; --s) here[s] = here[s - a] + add;
      std::fill(here, here + a, impossible);
    }
  }

 private:
  void lower(float* to, const float* from, float step) const {
    for (std::int64_t s = 0; s <= columns_; ++s) {
      const float other = from[s] + step;
      to[s] = other < to[s] ? other : to[s];
    }
  }

  std::int64_t rows_;
  std::int64_t columns_;
  std::vector<float> entries_;
};

Table extend(const Axis& axis, const Table& inner, std::int64_t columns) {
  const std::int64_t rows = std::ssize(inner) - 1;
  const auto step = static_cast<float>(eighths * axis.bytes);
  Slices slices(rows, columns);
  for (std::int64_t a = 0; a <= rows; ++a) {
    const auto positions = static_cast<float>(a);
    const float first = axis.periodic ? 2 * step : static_cast<float>(axis.price[0]);
    slices.row(a)[a] = inner[as_index(a)] + first * positions;
  }
  for (std::int64_t i = 1; i < axis.extent; ++i) {
    slices.relax(axis.periodic ? 0 : step, !axis.periodic);
    slices.append(inner, axis.periodic ? 0 : static_cast<float>(axis.price[as_index(i)]));
  }
  Table table(as_index(columns + 1), impossible);
  for (std::int64_t a = 0; a <= rows; ++a) {
    const float last = axis.periodic ? 2 * step * static_cast<float>(a) : 0;
    for (std::int64_t s = 0; s <= columns; ++s) {
      table[as_index(s)] = std::min(table[as_index(s)], slices.row(a)[s] - last);
    }
  }
  return table;
}

class SliceBound {
 public:
  SliceBound(const GridShape& shape, Sizes sizes) : positions_(shape.positions()) {
    for (std::size_t d = 0; d < shape.dims(); ++d) {
      if (shape.extents()[d] > 1 && shape.bytes()[d] > 0) unit_ = std::gcd(unit_, shape.bytes()[d]);
    }
    for (std::size_t d = 0; d < shape.dims(); ++d) {
      const std::int64_t extent = shape.extents()[d];
      if (extent == 1) continue;
      Axis axis{extent, shape.bytes()[d] / std::max<std::int64_t>(unit_, 1), shape.periodic(d), {}};
      if (!axis.periodic) {
        axis.price.assign(as_index(extent), 0);
        axis.price.front() = axis.price.back() = eighths * axis.bytes;
      }
      axes_.push_back(std::move(axis));
    }
    for (const std::int64_t size : sizes) {
      if (size > 0) ++hosts_[size];
    }
    largest_ = hosts_.rbegin()->first;
  }

  [[nodiscard]] std::optional<std::int64_t> search(std::int64_t target) {
    if (unit_ == 0) return 0;
    if (!fits()) return std::nullopt;
    std::int64_t best = 0;
    choose_order(best);
    Random random(1);
    std::int64_t tries = std::min(max_tries, max_work / work());
    const std::int64_t all = tries;
    while (tries-- > 0 && rounded(best) < target) {
      const std::vector<Axis> before = axes_;
      if (!change(random, tries * 4 / all)) break;
      const std::int64_t value = evaluate();
      if (value >= best) {
        best = value;
      } else {
        axes_ = before;
      }
    }
    return rounded(best);
  }

 private:
  // Entries of the tables of one evaluation.
  [[nodiscard]] std::int64_t work() const {
    std::int64_t sum = 1;
    std::int64_t area = 1;
    for (const Axis& axis : axes_) {
      sum += axis.extent * (std::min(area, largest_) + 1) * (std::min(area * axis.extent, largest_) + 1);
      area *= axis.extent;
    }
    return sum;
  }

  [[nodiscard]] bool fits() const {
    std::int64_t heaviest = 0;
    for (const Axis& axis : axes_) heaviest = std::max(heaviest, axis.bytes);
    const std::int64_t dims = std::ssize(axes_);
    if (heaviest > exact || heaviest * largest_ > exact / (8 * eighths * dims)) return false;
    return largest_ <= 2048 && positions_ <= max_ranks && work() <= max_work / 4;
  }

  [[nodiscard]] std::int64_t evaluate() const {
    Table table{0, 0};
    std::int64_t area = 1;
    for (const Axis& axis : axes_) {
      area *= axis.extent;
      table = extend(axis, table, std::min(area, largest_));
    }
    std::int64_t sum = 0;
    for (const auto& [size, count] : hosts_) sum += static_cast<std::int64_t>(table[as_index(size)]) * count;
    for (const Axis& axis : axes_) {
      for (const std::int64_t price : axis.price) sum -= price * (positions_ / axis.extent);
    }
    return sum;
  }

  // Every pair of neighbours on different hosts counts twice.
  [[nodiscard]] std::int64_t rounded(std::int64_t value) const {
    const std::int64_t pair = 2 * eighths;
    return std::max<std::int64_t>(0, (value + pair - 1) / pair) * 2 * unit_;
  }

  // The order in which dimensions are sliced that gives the best bound.
  void choose_order(std::int64_t& best) {
    std::vector<std::size_t> order(axes_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::vector<Axis> all = axes_;
    std::vector<Axis> chosen = all;
    bool first = true;
    std::int64_t left = max_work / 4;
    do {
      for (std::size_t k = 0; k < order.size(); ++k) axes_[k] = all[order[k]];
      left -= work();
      if (!first && left < 0) continue;
      const std::int64_t value = evaluate();
      if (first || value > best) {
        best = value;
        chosen = axes_;
      }
      first = false;
    } while (std::ranges::next_permutation(order).found);
    axes_ = std::move(chosen);
  }

  // Changes the prices of some coordinates of one dimension, those at equal distances from the ends alike; the
  // `stage` runs from 3 to 0, and changes get smaller.
  bool change(Random& random, std::int64_t stage) {
    std::vector<std::size_t> open;
    for (std::size_t k = 0; k < axes_.size(); ++k) {
      if (!axes_[k].periodic && axes_[k].bytes > 0) open.push_back(k);
    }
    if (open.empty()) return false;
    Axis& axis = axes_[open[random.below(open.size())]];
    const std::int64_t step = axis.bytes << stage;
    const std::int64_t limit = 2 * eighths * axis.bytes;
    const std::size_t last = axis.price.size() - 1;
    const bool one = random.below(2) == 0;
    const std::size_t only = random.below(last / 2 + 1);
    for (std::size_t i = 0; i <= last / 2; ++i) {
      std::int64_t change = (static_cast<std::int64_t>(random.below(3)) - 1) * step;
      if (one) change = i == only ? (random.below(2) == 0 ? step : -step) : 0;
      axis.price[i] = axis.price[last - i] = std::clamp(axis.price[i] + change, -limit, limit);
    }
    return true;
  }

  std::vector<Axis> axes_;
  std::map<std::int64_t, std::int64_t> hosts_;  // number of hosts of each size
  std::int64_t positions_ = 0;
  std::int64_t largest_ = 0;
  std::int64_t unit_ = 0;
};

}  // namespace

std::optional<std::int64_t> slice_bound(const GridShape& shape, Sizes sizes, std::int64_t target) {
  return SliceBound(shape, sizes).search(target);
}

}  // namespace onehop::detail
