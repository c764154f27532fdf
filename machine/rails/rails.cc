// `assign_rails` for the messages of one host: checks, the simple rules, and the search.
#include "onehop/machine/rails.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "machine/rails/problem.h"
#include "src/base/checked.h"

namespace onehop {

namespace {

using detail::area_bound;
using detail::busiest_rail;
using detail::CutPieces;
using detail::RailChoice;
using detail::RailProblem;

constexpr std::array<std::string_view, 4> rule_names{"by_rank", "round_robin", "longest_first", "optimum"};
// So that sums of speeds and bytes over speeds stay finite.
constexpr double slowest = 1e-100;
constexpr double fastest = 1e100;
constexpr double exact_limit = 4e7;  // steps of the exact search: at most about 0.2 s

void check_speeds(const std::vector<double>& speeds) {
  if (speeds.empty() || speeds.size() > max_rails) {
    throw BadInput("expected 1 to " + std::to_string(max_rails) + " rails, found " + std::to_string(speeds.size()));
  }
  for (std::size_t rail = 0; rail < speeds.size(); ++rail) {
    if (speeds[rail] >= slowest && speeds[rail] <= fastest) continue;
    std::ostringstream text;
    text << "rail " << rail << ": expected a finite speed above 0";
    if (speeds[rail] > 0 && std::isfinite(speeds[rail])) text << " (from 1e-100 to 1e100)";
    text << ", found " << speeds[rail];
    throw BadInput(text.str());
  }
}

void check(std::span<const RailMessage> messages, const RailOptions& options) {
  check_speeds(options.speeds);
  if (options.min_piece < 1) {
    throw BadInput("expected min_piece of at least 1, found " + std::to_string(options.min_piece));
  }
  if (options.cut && options.rule != RailRule::optimum) {
    throw BadInput("expected the rule optimum to cut messages, found the rule " + std::string(to_string(options.rule)));
  }
  std::int64_t total = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].bytes < 0) {
      throw BadInput("message " + std::to_string(i) + ": expected 0 bytes or more, found " +
                     std::to_string(messages[i].bytes));
    }
    total = detail::checked_add(total, messages[i].bytes, "the sum of all messages");
  }
}

RailChoice by_rank(std::span<const RailMessage> messages, int rails) {
  std::map<int, int> rail_of;
  RailChoice choice;
  for (const RailMessage& message : messages) {
    const int next = static_cast<int>(rail_of.size()) % rails;
    choice.push_back(rail_of.try_emplace(message.from, next).first->second);
  }
  return choice;
}

RailChoice round_robin(std::size_t messages, int rails) {
  RailChoice choice;
  for (std::size_t i = 0; i < messages; ++i) choice.push_back(static_cast<int>(i % static_cast<std::size_t>(rails)));
  return choice;
}

RailPlan whole_plan(std::span<const RailMessage> messages, const RailProblem& problem, const RailChoice& choice) {
  RailPlan plan;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    plan.assignments.push_back({messages[i].from, messages[i].to, choice[i], 0, messages[i].bytes});
  }
  plan.loads = rail_loads(problem, choice);
  plan.busiest = busiest_rail(plan.loads, problem.speeds);
  return plan;
}

// Joins pieces of a message that follow each other on the same rail.
void append_piece(std::vector<RailAssignment>& assignments, const RailAssignment& piece, bool same_message) {
  if (same_message && assignments.back().rail == piece.rail) {
    assignments.back().bytes += piece.bytes;
  } else {
    assignments.push_back(piece);
  }
}

RailPlan cut_plan(std::span<const RailMessage> messages, const RailProblem& problem, const CutPieces& pieces) {
  std::vector<std::vector<RailAssignment>> of_message(messages.size());
  RailPlan plan;
  plan.loads.resize(pieces.size());
  for (std::size_t rail = 0; rail < pieces.size(); ++rail) {
    for (const detail::CutPiece& piece : pieces[rail]) {
      const RailMessage& message = messages[piece.message];
      of_message[piece.message].push_back({message.from, message.to, static_cast<int>(rail), piece.first, piece.bytes});
      plan.loads[rail] += piece.bytes;
    }
  }
  for (std::vector<RailAssignment>& parts : of_message) {
    std::ranges::sort(parts, {}, &RailAssignment::first_byte);
    for (std::size_t i = 0; i < parts.size(); ++i) append_piece(plan.assignments, parts[i], i > 0);
  }
  plan.busiest = busiest_rail(plan.loads, problem.speeds);
  return plan;
}

// A choice for whole messages, with the earliest end that is possible as far as known.
struct Known {
  RailChoice choice;
  double bound = 0;
};

// Where the heuristics find the optimum their choice is taken, because it also levels the other rails.
Known best_choice(const RailProblem& problem, bool exactly) {
  Known known{searched_choice(problem), whole_bound(problem)};
  const auto busiest = [&](const RailChoice& choice) {
    return busiest_rail(rail_loads(problem, choice), problem.speeds);
  };
  const double found = busiest(known.choice);
  if (!exactly || found <= known.bound) return known;
  std::optional<RailChoice> exact = exact_choice(problem, exact_limit);
  if (!exact) return known;
  known.bound = busiest(*exact);
  if (known.bound < found) known.choice = std::move(*exact);
  return known;
}

RailPlan whole_optimum(std::span<const RailMessage> messages, const RailProblem& problem) {
  const Known known = best_choice(problem, true);
  RailPlan plan = whole_plan(messages, problem, known.choice);
  plan.lower_bound = known.bound;
  return plan;
}

RailPlan cut_optimum(std::span<const RailMessage> messages, const RailProblem& problem, std::int64_t min_piece) {
  if (std::ranges::none_of(problem.sizes, [&](std::int64_t size) { return size / 2 >= min_piece; })) {
    return whole_optimum(messages, problem);
  }
  const double bound =
      area_bound(std::accumulate(problem.sizes.begin(), problem.sizes.end(), std::int64_t{0}), problem.speeds);
  RailPlan plan;
  for (const bool exactly : {false, true}) {
    const RailChoice choice = best_choice(problem, exactly).choice;
    RailPlan found = cut_plan(messages, problem, cut_choice(problem, choice, min_piece));
    if (plan.assignments.empty() || found.busiest < plan.busiest) plan = std::move(found);
    if (plan.busiest <= bound) break;
  }
  plan.lower_bound = bound;
  return plan;
}

RailPlan without_empty(std::span<const RailMessage> messages, const RailOptions& options) {
  RailProblem problem{{}, options.speeds};
  std::vector<RailMessage> filled;
  std::ranges::copy_if(messages, std::back_inserter(filled), [](const RailMessage& one) { return one.bytes > 0; });
  for (const RailMessage& message : filled) problem.sizes.push_back(message.bytes);
  if (filled.empty()) return {.assignments = {}, .loads = std::vector<std::int64_t>(options.speeds.size())};
  return options.cut ? cut_optimum(filled, problem, options.min_piece) : whole_optimum(filled, problem);
}

// Empty messages go to rail 0.
RailPlan optimum(std::span<const RailMessage> messages, const RailOptions& options) {
  RailPlan plan = without_empty(messages, options);
  std::vector<RailAssignment> all;
  auto next = plan.assignments.begin();
  for (const RailMessage& message : messages) {
    all.push_back({message.from, message.to, 0, 0, 0});
    if (message.bytes == 0) continue;
    all.back() = *next++;
    while (next != plan.assignments.end() && next->first_byte > 0) all.push_back(*next++);
  }
  plan.assignments = std::move(all);
  plan.optimal = plan.busiest <= plan.lower_bound;
  return plan;
}

RailChoice simple_choice(std::span<const RailMessage> messages, const RailProblem& problem, RailRule rule) {
  const int rails = static_cast<int>(problem.speeds.size());
  if (rule == RailRule::by_rank) return by_rank(messages, rails);
  if (rule == RailRule::round_robin) return round_robin(messages.size(), rails);
  return longest_first_choice(problem);
}

}  // namespace

std::string_view to_string(RailRule rule) { return rule_names.at(static_cast<std::size_t>(rule)); }

RailRule rail_rule_from_string(std::string_view name) {
  const auto found = std::ranges::find(rule_names, name);
  if (found == rule_names.end()) {
    throw BadInput("expected the rule by_rank, round_robin, longest_first or optimum, found '" + std::string(name) +
                   "'");
  }
  return static_cast<RailRule>(found - rule_names.begin());
}

RailPlan assign_rails(std::span<const RailMessage> messages, const RailOptions& options) {
  check(messages, options);
  RailProblem problem{{}, options.speeds};
  for (const RailMessage& message : messages) problem.sizes.push_back(message.bytes);
  if (options.rule == RailRule::optimum) return optimum(messages, options);
  RailPlan plan = whole_plan(messages, problem, simple_choice(messages, problem, options.rule));
  std::erase(problem.sizes, 0);
  plan.lower_bound = whole_bound(problem);
  plan.optimal = plan.busiest <= plan.lower_bound;
  return plan;
}

}  // namespace onehop
