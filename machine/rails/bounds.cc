// Loads of a choice, and the lower bounds that prove it best.
#include <algorithm>
#include <functional>
#include <numeric>

#include "machine/rails/problem.h"

namespace onehop::detail {

std::vector<std::int64_t> rail_loads(const RailProblem& problem, const RailChoice& choice) {
  std::vector<std::int64_t> loads(problem.speeds.size());
  for (std::size_t i = 0; i < choice.size(); ++i) loads[static_cast<std::size_t>(choice[i])] += problem.sizes[i];
  return loads;
}

double busiest_rail(std::span<const std::int64_t> loads, std::span<const double> speeds) {
  double busiest = 0;
  for (std::size_t rail = 0; rail < loads.size(); ++rail) {
    busiest = std::max(busiest, static_cast<double>(loads[rail]) / speeds[rail]);
  }
  return busiest;
}

std::int64_t rail_capacity(double seconds, double speed) {
  // Beyond 2^62 a double has no neighbouring integers, and no sum of sizes needs more.
  constexpr double most = 0x1p62;
  const double product = seconds * speed;
  if (!(product < most)) return static_cast<std::int64_t>(most);
  auto bytes = static_cast<std::int64_t>(product);
  while (static_cast<double>(bytes + 1) / speed <= seconds && static_cast<double>(bytes + 1) > product) ++bytes;
  while (bytes > 0 && static_cast<double>(bytes) / speed > seconds) --bytes;
  return bytes;
}

double area_bound(std::int64_t total, std::span<const double> speeds) {
  const auto holds = [&](double seconds) {
    std::int64_t room = total;
    for (const double speed : speeds) {
      room -= std::min(room, rail_capacity(seconds, speed));
      if (room == 0) return true;
    }
    return false;
  };
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  double low = 0;
  double high = static_cast<double>(total) / sum;
  while (!holds(high)) {
    low = high;
    high = std::max(high * (1 + 0x1p-40), high + 1 / sum);
  }
  // Rounding to whole bytes only adds to the ideal, so this is too early if the ideal is enough.
  if (low == 0) low = high * (1 - 0x1p-40);
  double middle = std::midpoint(low, high);
  while (low < middle && middle < high) {
    (holds(middle) ? high : low) = middle;
    middle = std::midpoint(low, high);
  }
  return high;
}

double whole_bound(const RailProblem& problem) {
  std::vector<std::int64_t> sizes = problem.sizes;
  std::vector<double> speeds = problem.speeds;
  std::ranges::sort(sizes, std::greater());
  std::ranges::sort(speeds, std::greater());
  if (sizes.empty()) return 0;
  const std::size_t rails = std::min(sizes.size(), speeds.size());
  double bound = area_bound(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), speeds);
  // The k longest messages use at most k rails, the fastest at best.
  double speed = 0;
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < rails; ++k) {
    speed += speeds[k];
    bytes += sizes[k];
    bound = std::max(bound, static_cast<double>(bytes) / speed * (1 - 0x1p-50));
  }
  // Among the first k * rails + 1 messages, k + 1 share a rail: at least the k + 1 shortest of them, on the fastest.
  for (std::size_t first = speeds.size(), k = 1; first < sizes.size(); first += speeds.size(), ++k) {
    std::int64_t sharing = 0;
    for (std::size_t i = first - k; i <= first; ++i) sharing += sizes[i];
    bound = std::max(bound, static_cast<double>(sharing) / speeds.front());
  }
  return bound;
}

}  // namespace onehop::detail
