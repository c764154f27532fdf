#include "machine/mapping/slice_partition.h"

#include <algorithm>
#include <cmath>

#include "machine/mapping/as_index.h"

namespace onehop::detail {

SlicePartition::SlicePartition(const SliceProblem& problem) : problem_(problem), few_(problem.hosts <= few_hosts) {
  if (!few_) return;
  for (std::size_t c = 0; c < problem.classes.size(); ++c) {
    for (const auto& [size, hosts] : problem.classes[c].sizes) {
      for (std::int64_t i = 0; i < hosts; ++i) hosts_.emplace_back(c, size);
    }
  }
}

double SlicePartition::most(Prices prices, std::span<double> usage) {
  double sum = 0;
  for (const SliceLevel& level : problem_.levels) {
    for (std::int64_t kind = 0; kind < level.kinds(); ++kind) {
      sum += few_ && level.area > 1 ? among_few(level, kind, prices, usage) : among_any(level, kind, prices, usage);
    }
  }
  return sum;
}

// Host after host takes positions, or none.
double SlicePartition::among_few(const SliceLevel& level, std::int64_t kind, Prices prices, std::span<double> usage) {
  const std::int64_t columns = level.area + 1;
  const auto slices = static_cast<double>(level.slices_of(kind));
  best_.assign(hosts_.size() * as_index(columns) + as_index(columns), -INFINITY);
  chosen_.assign(best_.size(), 0);
  best_[0] = 0;
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const double* from = best_.data() + h * as_index(columns);
    double* to = best_.data() + (h + 1) * as_index(columns);
    int* choice = chosen_.data() + (h + 1) * as_index(columns);
    const Prices here = prices.subspan(problem_.price_at(level, kind, hosts_[h].first));
    for (std::int64_t a = 0; a <= std::min(level.rows, hosts_[h].second); ++a) {
      const auto price = static_cast<double>(here[as_index(a)]);
      for (std::int64_t t = a; t < columns; ++t) {
        const double value = from[t - a] + price;
        if (value <= to[t]) continue;
        to[t] = value;
        choice[t] = static_cast<int>(a);
      }
    }
  }
  std::int64_t t = level.area;
  for (std::size_t h = hosts_.size(); h-- > 0;) {
    const std::int64_t a = chosen_[(h + 1) * as_index(columns) + as_index(t)];
    if (a > 0) usage[problem_.price_at(level, kind, hosts_[h].first) + as_index(a)] -= slices;
    t -= a;
  }
  return best_.back() * slices;
}

// Any number of hosts, of the class that pays most for its positions.
double SlicePartition::among_any(const SliceLevel& level, std::int64_t kind, Prices prices, std::span<double> usage) {
  const auto slices = static_cast<double>(level.slices_of(kind));
  const std::size_t classes = problem_.classes.size();
  std::vector<std::size_t> dearest;  // the price of each number of positions
  for (std::int64_t a = 0; a <= level.rows; ++a) {
    std::size_t most = problem_.price_at(level, kind, 0) + as_index(a);
    for (std::size_t c = 1; c < classes; ++c) {
      const std::size_t other = problem_.price_at(level, kind, c) + as_index(a);
      if (a <= problem_.classes[c].sizes.back().first && prices[other] > prices[most]) most = other;
    }
    dearest.push_back(most);
  }
  best_.assign(as_index(level.area + 1), -INFINITY);
  chosen_.assign(best_.size(), 0);
  best_[0] = 0;
  for (std::int64_t t = 1; t <= level.area; ++t) {
    for (std::int64_t a = 1; a <= std::min(level.rows, t); ++a) {
      const double value = best_[as_index(t - a)] + static_cast<double>(prices[dearest[as_index(a)]]);
      if (value <= best_[as_index(t)]) continue;
      best_[as_index(t)] = value;
      chosen_[as_index(t)] = static_cast<int>(a);
    }
  }
  for (std::int64_t t = level.area; t > 0; t -= chosen_[as_index(t)]) {
    usage[dearest[as_index(chosen_[as_index(t)])]] -= slices;
  }
  return best_.back() * slices;
}

}  // namespace onehop::detail
