#include "machine/mapping/slice_tables.h"

#include <algorithm>

#include "machine/mapping/as_index.h"

namespace onehop::detail {

namespace {

constexpr float impossible = 1e30F;

// Row a of a table of `columns` + 1 numbers a row.
float* row_of(std::vector<float>& table, std::int64_t a, std::int64_t columns) {
  return table.data() + a * (columns + 1);
}

void lower(float* to, const float* from, float step, std::int64_t columns) {
  for (std::int64_t t = 0; t <= columns; ++t) {
    const float other = from[t] + step;
    to[t] = other < to[t] ? other : to[t];
  }
}

}  // namespace

SliceTables::SliceTables(const SliceProblem& problem)
    : problem_(problem), tables_(problem.levels.size() + 1), appended_(problem.levels.size()) {
  tables_.front() = {0, 0};
  std::size_t largest = 0;
  for (std::size_t k = 0; k < problem.levels.size(); ++k) {
    const SliceLevel& level = problem.levels[k];
    const std::size_t one = as_index((level.rows + 1) * (level.columns + 1));
    appended_[k].resize(one * as_index(level.extent));
    tables_[k + 1].resize(as_index(level.columns + 1));
    largest = std::max(largest, one);
  }
  relaxed_.resize(largest);
}

const float* SliceTables::row(std::size_t level, std::int64_t slice, std::int64_t a) const {
  const SliceLevel& here = problem_.levels[level];
  return appended_[level].data() + (slice * (here.rows + 1) + a) * (here.columns + 1);
}

float* SliceTables::row(std::size_t level, std::int64_t slice, std::int64_t a) {
  return const_cast<float*>(std::as_const(*this).row(level, slice, a));
}

// The slice before may have fewer positions, or more too where the dimension is open, at a cost of `step` each.
void SliceTables::append(std::size_t k, std::int64_t slice, Prices prices) {
  const SliceLevel& level = problem_.levels[k];
  const auto step = static_cast<float>(problem_.parts * level.bytes);
  const std::int64_t columns = level.columns;
  if (slice > 0) {
    const float* from = row(k, slice - 1, 0);
    std::copy(from, from + (level.rows + 1) * (columns + 1), relaxed_.begin());
    const float fewer = level.periodic ? 0 : step;
    for (std::int64_t a = level.rows; a-- > 0;) {
      lower(row_of(relaxed_, a, columns), row_of(relaxed_, a + 1, columns), fewer, columns);
    }
    for (std::int64_t a = 1; !level.periodic && a <= level.rows; ++a) {
      lower(row_of(relaxed_, a, columns), row_of(relaxed_, a - 1, columns), step, columns);
    }
  }
  for (std::int64_t a = 0; a <= level.rows; ++a) {
    const float add = tables_[k][as_index(a)] + prices[as_index(a)];
    float* here = row(k, slice, a);
    std::fill(here, here + (slice > 0 ? a : columns + 1), impossible);
    if (slice == 0) {
      here[a] = add + (level.periodic ? 2 * step * static_cast<float>(a) : 0);
      continue;
    }
    const float* from = row_of(relaxed_, a, columns);
    for (std::int64_t t = a; t <= columns; ++t) here[t] = from[t - a] + add;
  }
}

void SliceTables::close(std::size_t k) {
  const SliceLevel& level = problem_.levels[k];
  const auto step = static_cast<float>(problem_.parts * level.bytes);
  Table& table = tables_[k + 1];
  std::ranges::fill(table, impossible);
  for (std::int64_t a = 0; a <= level.rows; ++a) {
    lower(table.data(), row(k, level.extent - 1, a), level.periodic ? -2 * step * static_cast<float>(a) : 0,
          level.columns);
  }
}

double SliceTables::least(std::size_t host_class, Prices prices) {
  for (std::size_t k = 0; k < problem_.levels.size(); ++k) {
    const SliceLevel& level = problem_.levels[k];
    for (std::int64_t slice = 0; slice < level.extent; ++slice) {
      append(k, slice, prices.subspan(problem_.price_at(level, level.kind(slice), host_class)));
    }
    close(k);
  }
  double sum = 0;
  for (const auto& [size, hosts] : problem_.classes[host_class].sizes) {
    sum += static_cast<double>(tables_.back()[as_index(size)]) * static_cast<double>(hosts);
  }
  return sum;
}

std::int64_t SliceTables::last(std::size_t k, std::int64_t t) const {
  const SliceLevel& level = problem_.levels[k];
  const auto step = static_cast<float>(problem_.parts * level.bytes);
  std::int64_t a = 0;
  while (row(k, level.extent - 1, a)[t] - (level.periodic ? 2 * step * static_cast<float>(a) : 0) !=
         tables_[k + 1][as_index(t)]) {
    ++a;
  }
  return a;
}

std::int64_t SliceTables::before(std::size_t k, std::int64_t slice, std::int64_t a, std::int64_t t, float cost) const {
  const SliceLevel& level = problem_.levels[k];
  const auto step = static_cast<float>(problem_.parts * level.bytes);
  std::int64_t b = a;
  for (std::int64_t distance = 0;; ++distance) {
    b = a + distance;
    const float move = level.periodic ? 0 : step * static_cast<float>(distance);
    if (b <= level.rows && row(k, slice - 1, b)[t] + move == cost) return b;
    b = a - distance;
    if (!level.periodic && b >= 0 && row(k, slice - 1, b)[t] + move == cost) return b;
  }
}

void SliceTables::add_usage(std::size_t host_class, Prices prices, std::span<double> usage) const {
  std::vector<double> sets;  // entry t: how many sets of t positions the hosts have
  for (const auto& [size, hosts] : problem_.classes[host_class].sizes) {
    sets.resize(as_index(size + 1), 0);
    sets[as_index(size)] += static_cast<double>(hosts);
  }
  for (std::size_t k = problem_.levels.size(); k-- > 0;) {
    const SliceLevel& level = problem_.levels[k];
    std::vector<double> inner(as_index(level.rows + 1), 0);
    for (std::int64_t set = 1; set < std::ssize(sets); ++set) {
      const double times = sets[as_index(set)];
      if (times == 0) continue;
      std::int64_t t = set;
      std::int64_t a = last(k, t);
      for (std::int64_t slice = level.extent - 1;; --slice) {
        const std::size_t paid = problem_.price_at(level, level.kind(slice), host_class) + as_index(a);
        if (a > 0) usage[paid] += times;
        inner[as_index(a)] += times;
        if (slice == 0) break;
        const float cost = row(k, slice, a)[t] - (tables_[k][as_index(a)] + prices[paid]);
        t -= a;
        a = before(k, slice, a, t, cost);
      }
    }
    sets = std::move(inner);
  }
}

}  // namespace onehop::detail
