// The exact assignment, by dynamic programming over sets of messages. Messages of the same size are interchangeable, so
// a set is a number of messages of each size. The equal faces of many ranks thus cost little, and 12 different messages
// need 3^12 steps per rail.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "machine/rails/problem.h"

namespace onehop::detail {

namespace {

// The messages grouped by size. The set with digits d has the number sum(d[i] * stride[i]), so the difference of two
// sets, one inside the other, is the difference of their numbers.
struct Sets {
  std::vector<std::int64_t> sizes;
  std::vector<int> counts;
  std::vector<std::size_t> strides;
  std::size_t states = 1;

  explicit Sets(const RailProblem& problem) {
    std::map<std::int64_t, int, std::greater<>> groups;
    for (const std::int64_t size : problem.sizes) ++groups[size];
    for (const auto& [size, count] : groups) {
      sizes.push_back(size);
      counts.push_back(count);
    }
  }

  void number() {
    for (const int count : counts) {
      strides.push_back(states);
      states *= static_cast<std::size_t>(count) + 1;
    }
  }

  // The number of pairs of a set and one of its subsets.
  [[nodiscard]] double pairs() const {
    double product = 1;
    for (const double count : counts) product *= (count + 1) * (count + 2) / 2;
    return product;
  }

  [[nodiscard]] std::vector<int> digits(std::size_t set) const {
    std::vector<int> result(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      result[i] = static_cast<int>(set / strides[i] % (static_cast<std::size_t>(counts[i]) + 1));
    }
    return result;
  }

  [[nodiscard]] std::vector<double> loads() const {
    std::vector<double> result(states);
    for (std::size_t set = 0; set < states; ++set) {
      const std::vector<int> held = digits(set);
      std::int64_t bytes = 0;
      for (std::size_t i = 0; i < held.size(); ++i) bytes += held[i] * sizes[i];
      result[set] = static_cast<double>(bytes);
    }
    return result;
  }
};

// The least time in which the first rails carry each set, and the subset that the last of them carries.
struct Stage {
  std::vector<double> seconds;
  std::vector<std::size_t> last;
};

// Calls visit(subset) for every subset of the set with these digits.
template <class Visit>
void for_each_subset(const std::vector<int>& held, const std::vector<std::size_t>& strides, Visit visit) {
  std::vector<int> taken(held.size());
  std::size_t subset = 0;
  while (true) {
    visit(subset);
    std::size_t i = 0;
    for (; i < held.size(); ++i) {
      if (taken[i] < held[i]) {
        ++taken[i];
        subset += strides[i];
        break;
      }
      subset -= static_cast<std::size_t>(taken[i]) * strides[i];
      taken[i] = 0;
    }
    if (i == held.size()) return;
  }
}

Stage next_stage(const Sets& sets, const std::vector<double>& loads, const Stage& before, double speed, bool is_last) {
  Stage stage{std::vector<double>(sets.states, std::numeric_limits<double>::infinity()),
              std::vector<std::size_t>(sets.states)};
  for (std::size_t set = is_last ? sets.states - 1 : 0; set < sets.states; ++set) {
    double best = std::numeric_limits<double>::infinity();
    for_each_subset(sets.digits(set), sets.strides, [&](std::size_t subset) {
      const double seconds = std::max(before.seconds[set - subset], loads[subset] / speed);
      if (seconds < best) {
        best = seconds;
        stage.last[set] = subset;
      }
    });
    stage.seconds[set] = best;
  }
  return stage;
}

std::vector<std::size_t> fastest_rails(const RailProblem& problem) {
  std::vector<std::size_t> rails(problem.speeds.size());
  std::iota(rails.begin(), rails.end(), std::size_t{0});
  std::ranges::stable_sort(rails, std::greater(), [&](std::size_t rail) { return problem.speeds[rail]; });
  // With more rails than messages, some fast rail is empty whenever a slower one is used.
  rails.resize(std::min(rails.size(), problem.sizes.size()));
  return rails;
}

}  // namespace

std::optional<RailChoice> exact_choice(const RailProblem& problem, double limit) {
  if (problem.sizes.empty()) return RailChoice();
  const std::vector<std::size_t> rails = fastest_rails(problem);
  Sets sets(problem);
  const double inner_stages = rails.size() > 2 ? static_cast<double>(rails.size() - 2) : 1;
  if (sets.pairs() * inner_stages > limit) return std::nullopt;
  sets.number();

  const std::vector<double> loads = sets.loads();
  std::vector<Stage> stages(1);
  for (std::size_t set = 0; set < sets.states; ++set) {
    stages[0].seconds.push_back(loads[set] / problem.speeds[rails[0]]);
    stages[0].last.push_back(set);
  }
  for (std::size_t k = 1; k < rails.size(); ++k) {
    stages.push_back(next_stage(sets, loads, stages.back(), problem.speeds[rails[k]], k + 1 == rails.size()));
  }

  // Back from the last rail: its messages of each size are the first that are not yet taken.
  std::map<std::int64_t, std::vector<std::size_t>> waiting;
  for (std::size_t i = problem.sizes.size(); i-- > 0;) waiting[problem.sizes[i]].push_back(i);
  RailChoice choice(problem.sizes.size());
  std::size_t set = sets.states - 1;
  for (std::size_t k = rails.size(); k-- > 0; set -= stages[k].last[set]) {
    const std::vector<int> taken = sets.digits(stages[k].last[set]);
    for (std::size_t i = 0; i < taken.size(); ++i) {
      std::vector<std::size_t>& same = waiting[sets.sizes[i]];
      for (int n = 0; n < taken[i]; ++n, same.pop_back()) choice[same.back()] = static_cast<int>(rails[k]);
    }
  }
  return choice;
}

}  // namespace onehop::detail
