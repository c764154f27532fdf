// A Lagrangian bound. Every number a of positions that a host has in a slice of the grid gets a price, which differs
// from slice to slice. If g(n) is the least sum of leaving bytes and prices that a host of n positions can have, and m
// the most that hosts can pay which divide a slice among them, then all maps have at least
//   sum of g(n) over the hosts - sum of m over the slices
// between their hosts, for any prices: the hosts of a map pay for their slices what these slices receive. Prices of one
// message for each position at open ends give the surface bound of bound.cc; prices of 0 give the least boundary of
// sets within the box (Bollobas and Leader, "Edge-isoperimetric inequalities in the grid", Combinatorica 11 (1991)),
// thin dimensions included. Prices that are not proportional to a know what bounds of single hosts cannot: which widths
// add up to the width of the grid.
//
// A bound of g comes from slices: let a set have a_i positions in slice i of a dimension. Slices i and i + 1 differ in
// |a_i - a_(i+1)| positions or more, each of which sends a message between them. So
//   g(n) >= min over a_1 + ... + a_k = n of sum of (h(a_i) + price_i(a_i)) + bytes * sum of |a_i - a_(i+1)|,
// where h is the same bound in one dimension less. The slices of a periodic dimension have the same prices, so that
// their order does not matter, and the second sum is at least 2 * (largest a_i - smallest a_i).
//
// The bound is concave in the prices. Adam (Kingma and Ba, 2015) follows its supergradient: how often a price is paid
// by the hosts, less how often it is received by the slices.
#include "machine/mapping/slice_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "machine/mapping/as_index.h"
#include "machine/mapping/slice_partition.h"
#include "machine/mapping/slice_tables.h"

namespace onehop::detail {

namespace {

// Prices are integers in 1/32 (1/8 for large messages) of the greatest common divisor of the messages' bytes; a float
// holds all sums of them exactly, and compilers use vectors of it.
constexpr std::int64_t finest = 32;
constexpr std::int64_t coarsest = 8;
constexpr std::int64_t exact = std::int64_t{1} << 24;
constexpr std::int64_t highest = 4;                // price of a position, in messages
constexpr std::int64_t largest_work = 10'000'000;  // of one evaluation
constexpr std::int64_t max_work = 300'000'000;     // of all evaluations
constexpr std::int64_t max_steps = 2'000;
constexpr std::size_t longest_orders = 2;  // orders of dimensions that are followed to the end

struct Dimension {
  std::int64_t extent = 1;
  std::int64_t bytes = 0;
  bool periodic = false;
};

// The prices of one order of dimensions.
class Ascent {
 public:
  explicit Ascent(SliceProblem problem)
      : problem_(std::move(problem)),
        tables_(problem_),
        partition_(problem_),
        price_(problem_.prices, 0),
        rounded_(problem_.prices, 0),
        usage_(problem_.prices, 0),
        mean_(problem_.prices, 0),
        square_(problem_.prices, 0),
        limit_(problem_.prices, 0) {
    for (const SliceLevel& level : problem_.levels) {
      const auto message = static_cast<double>(problem_.parts * level.bytes);
      for (std::int64_t kind = 0; kind < level.kinds(); ++kind) {
        for (std::size_t c = 0; c < problem_.classes.size(); ++c) {
          const std::size_t first = problem_.price_at(level, kind, c);
          for (std::int64_t a = 0; a <= level.rows; ++a) {
            const double positions = static_cast<double>(a);
            limit_[first + as_index(a)] = static_cast<double>(highest) * message * positions;
            if (kind == 0 && !level.periodic) price_[first + as_index(a)] = message * positions;
          }
        }
      }
    }
  }

  // The bound for the present prices, in units / parts, and its supergradient if it is wanted.
  double evaluate(bool gradient) {
    for (std::size_t p = 0; p < price_.size(); ++p) rounded_[p] = static_cast<float>(std::nearbyint(price_[p]));
    std::ranges::fill(usage_, 0);
    double sum = -partition_.most(rounded_, usage_);
    for (std::size_t c = 0; c < problem_.classes.size(); ++c) {
      sum += tables_.least(c, rounded_);
      if (gradient) tables_.add_usage(c, rounded_, usage_);
    }
    best_ = std::max(best_, sum);
    return sum;
  }

  // Takes `steps` steps, each shorter than the one before, until the bound is `target`. Returns the best bound so far.
  double run(std::int64_t steps, double target) {
    std::ranges::fill(mean_, 0);
    std::ranges::fill(square_, 0);
    const double shorter = std::pow(last_step / first_step, 1 / static_cast<double>(steps));
    double step = first_step;
    double mean_share = 1;
    double square_share = 1;
    for (std::int64_t i = 0; i < steps && best_ < target; ++i) {
      (void)evaluate(true);
      step *= shorter;
      mean_share *= keep_mean;
      square_share *= keep_square;
      for (std::size_t p = 0; p < price_.size(); ++p) {
        mean_[p] = keep_mean * mean_[p] + (1 - keep_mean) * usage_[p];
        square_[p] = keep_square * square_[p] + (1 - keep_square) * usage_[p] * usage_[p];
        if (square_[p] == 0) continue;
        const double change = mean_[p] / (1 - mean_share) / std::sqrt(square_[p] / (1 - square_share));
        price_[p] = std::clamp(price_[p] + step * change, -limit_[p], limit_[p]);
      }
    }
    return best_;
  }

 private:
  // In units / parts, and the parts of the averages that a step keeps. Of several settings on random grids, these gave
  // the highest bounds.
  static constexpr double first_step = 15;
  static constexpr double last_step = 0.06;
  static constexpr double keep_mean = 0.8;
  static constexpr double keep_square = 0.95;

  SliceProblem problem_;
  SliceTables tables_;
  SlicePartition partition_;
  std::vector<double> price_;
  std::vector<float> rounded_;
  std::vector<double> usage_;
  std::vector<double> mean_;
  std::vector<double> square_;
  std::vector<double> limit_;
  double best_ = 0;
};

class SliceBound {
 public:
  SliceBound(const GridShape& shape, Sizes sizes) : positions_(shape.positions()) {
    for (std::size_t d = 0; d < shape.dims(); ++d) {
      if (shape.extents()[d] > 1 && shape.bytes()[d] > 0) unit_ = std::gcd(unit_, shape.bytes()[d]);
    }
    for (std::size_t d = 0; d < shape.dims(); ++d) {
      if (shape.extents()[d] == 1) continue;
      dimensions_.push_back(
          {shape.extents()[d], shape.bytes()[d] / std::max<std::int64_t>(unit_, 1), shape.periodic(d)});
    }
    for (const std::int64_t size : sizes) {
      if (size == 0) continue;
      ++sizes_[size];
      ++hosts_;
    }
    largest_ = sizes_.rbegin()->first;
  }

  [[nodiscard]] std::optional<std::int64_t> search(std::int64_t target) {
    if (unit_ == 0) return 0;
    parts_ = finest;
    while (parts_ >= coarsest && !exact_in_float()) parts_ /= 2;
    const bool fits = parts_ >= coarsest && largest_ <= 2048 && positions_ <= max_ranks;
    if (!fits) return std::nullopt;
    const std::vector<Try> orders = ordered(target);
    if (orders.empty()) return std::nullopt;
    double best = orders.front().bound;
    for (std::size_t i = 0; i < std::min(longest_orders, orders.size()) && rounded(best) < target; ++i) {
      SliceProblem longer = problem(orders[i].order);
      const std::int64_t steps = std::min(max_steps, max_work / 3 / work(longer));
      best = std::max(best, Ascent(std::move(longer)).run(steps, wanted(target)));
    }
    return rounded(best);
  }

 private:
  using Order = std::vector<std::size_t>;
  struct Try {
    double bound = 0;  // in units / parts
    Order order;
  };

  [[nodiscard]] bool exact_in_float() const {
    std::int64_t heaviest = 0;
    for (const Dimension& each : dimensions_) heaviest = std::max(heaviest, each.bytes);
    return heaviest <= exact && heaviest * largest_ <= exact / ((highest + 2) * parts_ * std::ssize(dimensions_));
  }

  [[nodiscard]] SliceProblem problem(const Order& order) const {
    SliceProblem made;
    made.hosts = hosts_;
    made.parts = parts_;
    // A few hosts are told apart by their sizes; many have the same prices.
    for (const auto& size : sizes_) {
      if (made.classes.empty() || hosts_ <= few_hosts) made.classes.emplace_back();
      made.classes.back().sizes.emplace_back(size);
    }
    std::int64_t area = 1;
    for (const std::size_t d : order) {
      const Dimension& from = dimensions_[d];
      SliceLevel level{from.extent, from.bytes, from.periodic, area};
      level.rows = std::min(area, largest_);
      area *= from.extent;
      level.columns = std::min(area, largest_);
      level.sets = positions_ / area;
      level.first = made.prices;
      made.prices += as_index(level.kinds() * (level.rows + 1)) * made.classes.size();
      made.levels.push_back(level);
    }
    return made;
  }

  // Steps of one evaluation: entries of tables, and divisions of slices among hosts.
  [[nodiscard]] static std::int64_t work(const SliceProblem& problem) {
    const bool few = problem.hosts <= few_hosts;
    std::int64_t sum = 1;
    for (const SliceLevel& level : problem.levels) {
      sum += std::ssize(problem.classes) * level.extent * (level.rows + 1) * (level.columns + 1);
      sum += (few ? problem.hosts : 1) * level.kinds() * level.area * (level.rows + 1);
    }
    return sum;
  }

  // Every pair of neighbours on different hosts counts twice.
  [[nodiscard]] std::int64_t rounded(double value) const {
    const auto pair = static_cast<double>(2 * parts_);
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(value / pair))) * 2 * unit_;
  }
  [[nodiscard]] double wanted(std::int64_t target) const {  // the least value that is rounded to the target
    return (static_cast<double>(target) / static_cast<double>(2 * unit_) - 1) * static_cast<double>(2 * parts_) + 0.5;
  }

  // The orders in which dimensions are sliced, with the best bounds after a few steps first.
  [[nodiscard]] std::vector<Try> ordered(std::int64_t target) const {
    std::vector<Try> found;
    Order order(dimensions_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::int64_t all = 1;
    for (std::size_t d = 2; d <= order.size(); ++d) all *= static_cast<std::int64_t>(d);
    std::int64_t left = max_work / 3;
    do {
      SliceProblem next = problem(order);
      const std::int64_t each = work(next);
      if (each > largest_work || (!found.empty() && left < 0)) continue;
      const std::int64_t steps = std::min(max_steps / 20, max_work / 3 / each / all);
      left -= (steps + 1) * each;
      Ascent ascent(std::move(next));
      (void)ascent.evaluate(false);
      found.push_back({ascent.run(steps, wanted(target)), order});
      if (rounded(found.back().bound) >= target) break;
    } while (std::ranges::next_permutation(order).found);
    std::ranges::stable_sort(found, std::ranges::greater{}, &Try::bound);
    return found;
  }

  std::vector<Dimension> dimensions_;
  std::map<std::int64_t, std::int64_t> sizes_;  // number of hosts of each size
  std::int64_t hosts_ = 0;
  std::int64_t positions_ = 0;
  std::int64_t largest_ = 0;
  std::int64_t unit_ = 0;
  std::int64_t parts_ = 1;
};

}  // namespace

std::optional<std::int64_t> slice_bound(const GridShape& shape, Sizes sizes, std::int64_t target) {
  return SliceBound(shape, sizes).search(target);
}

}  // namespace onehop::detail
