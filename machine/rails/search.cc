// Assignments of many messages: longest first, multifit, and a local search that solves two or three rails exactly.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "machine/rails/problem.h"

namespace onehop::detail {

namespace {

constexpr double pair_limit = 200'000;    // steps of one exact search over two rails
constexpr double triple_limit = 600'000;  // the same over three rails
constexpr int triples_tried = 100;        // so that the search ends soon where it gains little
constexpr double multifit_limit = 4e6;    // messages times rails
constexpr int multifit_steps = 40;
constexpr double search_limit = 3e7;  // steps of a local search: less than a second

std::vector<std::size_t> longest_first(const RailProblem& problem) {
  std::vector<std::size_t> order(problem.sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return problem.sizes[i]; });
  return order;
}

// First fit: each message, longest first, on the slowest rail that still has room for it within `seconds`.
std::optional<RailChoice> first_fit(const RailProblem& problem, std::span<const std::size_t> order,
                                    std::span<const std::size_t> slowest_first, double seconds) {
  std::vector<std::int64_t> room;
  for (const double speed : problem.speeds) room.push_back(rail_capacity(seconds, speed));
  RailChoice choice(problem.sizes.size());
  for (const std::size_t i : order) {
    const auto found =
        std::ranges::find_if(slowest_first, [&](std::size_t rail) { return room[rail] >= problem.sizes[i]; });
    if (found == slowest_first.end()) return std::nullopt;
    room[*found] -= problem.sizes[i];
    choice[i] = static_cast<int>(*found);
  }
  return choice;
}

// Bisects the time within which first fit succeeds.
RailChoice multifit(const RailProblem& problem, RailChoice best) {
  const std::vector<std::size_t> order = longest_first(problem);
  std::vector<std::size_t> slowest_first(problem.speeds.size());
  std::iota(slowest_first.begin(), slowest_first.end(), std::size_t{0});
  std::ranges::stable_sort(slowest_first, std::less(), [&](std::size_t rail) { return problem.speeds[rail]; });
  double low = whole_bound(problem);
  double high = busiest_rail(rail_loads(problem, best), problem.speeds);
  for (int step = 0; step < multifit_steps && low < high; ++step) {
    const double middle = step == 0 ? low : std::midpoint(low, high);
    std::optional<RailChoice> found = first_fit(problem, order, slowest_first, middle);
    if (found) {
      best = std::move(*found);
      high = busiest_rail(rail_loads(problem, best), problem.speeds);
    } else {
      low = middle;
    }
  }
  return best;
}

// Lowers the load of the busiest rail step by step, exchanging messages with one or two other rails.
class LocalSearch {
 public:
  LocalSearch(const RailProblem& problem, RailChoice start)
      : problem_(problem), choice_(std::move(start)), held_(problem.speeds.size()) {
    for (std::size_t i = 0; i < choice_.size(); ++i) held_[rail_of(i)].push_back(i);
    loads_ = rail_loads(problem, choice_);
  }

  RailChoice run() {
    const double bound = whole_bound(problem_);
    // Every turn lowers a busiest rail. The limit bounds the time where the gains are tiny.
    while (steps_ < search_limit) {
      const std::size_t busiest = order_of_rails().back();
      if (seconds(busiest) <= bound || !(improve_with_one(busiest) || improve_with_two(busiest))) break;
    }
    return choice_;
  }

 private:
  [[nodiscard]] std::size_t rail_of(std::size_t message) const { return static_cast<std::size_t>(choice_[message]); }
  [[nodiscard]] double seconds(std::size_t rail) const {
    return static_cast<double>(loads_[rail]) / problem_.speeds[rail];
  }

  // The rail that finishes first comes first.
  [[nodiscard]] std::vector<std::size_t> order_of_rails() const {
    std::vector<std::size_t> order(held_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::less(), [&](std::size_t rail) { return seconds(rail); });
    return order;
  }

  void move(std::size_t message, std::size_t rail) {
    std::erase(held_[rail_of(message)], message);
    loads_[rail_of(message)] -= problem_.sizes[message];
    choice_[message] = static_cast<int>(rail);
    held_[rail].push_back(message);
    loads_[rail] += problem_.sizes[message];
  }

  // Sorting and grouping take time in proportion to the messages, and an exact search up to 3^messages steps.
  void count_steps(std::size_t messages, double limit) {
    constexpr double per_message = 20;
    const double exact = std::pow(3.0, static_cast<double>(messages));
    steps_ += per_message * static_cast<double>(messages) + (exact <= limit ? exact : 0);
  }

  // Distributes the messages of these rails anew. Returns whether the busiest, rails[0], is relieved.
  bool solve_exactly(std::span<const std::size_t> rails, double limit, bool& affordable) {
    RailProblem part;
    std::vector<std::size_t> messages;
    for (const std::size_t rail : rails) {
      part.speeds.push_back(problem_.speeds[rail]);
      messages.insert(messages.end(), held_[rail].begin(), held_[rail].end());
    }
    count_steps(messages.size(), limit);
    std::ranges::sort(messages);
    for (const std::size_t i : messages) part.sizes.push_back(problem_.sizes[i]);
    const std::optional<RailChoice> found = exact_choice(part, limit);
    affordable = found.has_value();
    if (!found || !(busiest_rail(rail_loads(part, *found), part.speeds) < seconds(rails[0]))) return false;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const std::size_t rail = rails[static_cast<std::size_t>((*found)[i])];
      if (rail != rail_of(messages[i])) move(messages[i], rail);
    }
    return true;
  }

  bool improve_with_one(std::size_t busiest) {
    for (const std::size_t other : order_of_rails()) {
      if (other == busiest) continue;
      bool affordable = false;
      if (solve_exactly(std::array{busiest, other}, pair_limit, affordable)) return true;
      if (!affordable && exchange(busiest, other)) return true;
    }
    return false;
  }

  bool improve_with_two(std::size_t busiest) {
    const std::vector<std::size_t> order = order_of_rails();
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (order[i] == busiest || order[j] == busiest) continue;
        if (triples_++ >= triples_tried) return false;
        bool affordable = false;
        if (solve_exactly(std::array{busiest, order[j], order[i]}, triple_limit, affordable)) return true;
      }
    }
    return false;
  }

  // Moves one message from the busiest rail to another, or swaps it with a shorter one: the best such step of all.
  bool exchange(std::size_t busiest, std::size_t other) {
    std::vector<std::size_t> theirs = held_[other];
    std::ranges::sort(theirs, std::less(), [&](std::size_t i) { return std::pair(problem_.sizes[i], i); });
    const double fast = problem_.speeds[busiest];
    const double slow = problem_.speeds[other];
    // Both rails finish together after `wanted` bytes have changed sides.
    const double wanted =
        (static_cast<double>(loads_[busiest]) * slow - static_cast<double>(loads_[other]) * fast) / (fast + slow);
    double best = seconds(busiest);
    std::pair<std::size_t, std::optional<std::size_t>> step;
    const auto consider = [&](std::size_t mine, std::optional<std::size_t> back) {
      const std::int64_t moved = problem_.sizes[mine] - (back ? problem_.sizes[*back] : 0);
      const double after = std::max(static_cast<double>(loads_[busiest] - moved) / fast,
                                    static_cast<double>(loads_[other] + moved) / slow);
      if (after < best) {
        best = after;
        step = {mine, back};
      }
    };
    for (const std::size_t mine : held_[busiest]) {
      consider(mine, std::nullopt);
      const double back = static_cast<double>(problem_.sizes[mine]) - wanted;
      const auto above = std::ranges::lower_bound(
          theirs, back, std::less(), [&](std::size_t i) { return static_cast<double>(problem_.sizes[i]); });
      if (above != theirs.end()) consider(mine, *above);
      if (above != theirs.begin()) consider(mine, *std::prev(above));
    }
    if (!(best < seconds(busiest))) return false;
    move(step.first, other);
    if (step.second) move(*step.second, busiest);
    return true;
  }

  const RailProblem& problem_;
  RailChoice choice_;
  std::vector<std::vector<std::size_t>> held_;  // the messages of each rail
  std::vector<std::int64_t> loads_;
  int triples_ = 0;
  double steps_ = 0;
};

}  // namespace

RailChoice longest_first_choice(const RailProblem& problem) {
  std::vector<std::int64_t> loads(problem.speeds.size());
  RailChoice choice(problem.sizes.size());
  for (const std::size_t i : longest_first(problem)) {
    double best = std::numeric_limits<double>::infinity();
    std::size_t chosen = 0;
    for (std::size_t rail = 0; rail < loads.size(); ++rail) {
      const double seconds = static_cast<double>(loads[rail] + problem.sizes[i]) / problem.speeds[rail];
      if (seconds < best) {
        best = seconds;
        chosen = rail;
      }
    }
    loads[chosen] += problem.sizes[i];
    choice[i] = static_cast<int>(chosen);
  }
  return choice;
}

RailChoice searched_choice(const RailProblem& problem) {
  const auto busiest = [&](const RailChoice& choice) {
    return busiest_rail(rail_loads(problem, choice), problem.speeds);
  };
  const RailChoice start = longest_first_choice(problem);
  RailChoice best = LocalSearch(problem, start).run();
  const double work = static_cast<double>(problem.sizes.size()) * static_cast<double>(problem.speeds.size());
  if (busiest(best) <= whole_bound(problem) || work > multifit_limit) return best;
  RailChoice other = LocalSearch(problem, multifit(problem, start)).run();
  return busiest(other) < busiest(best) ? other : best;
}

}  // namespace onehop::detail
