// Rails: the exact search against a plain one over all assignments, the others against lower bounds.
#include "onehop/machine/rails.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include "machine/rails/problem.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using Sizes = std::vector<std::int64_t>;
using Speeds = std::vector<double>;

std::vector<RailMessage> messages_of(const Sizes& sizes) {
  std::vector<RailMessage> messages;
  for (const std::int64_t size : sizes) messages.push_back({static_cast<int>(messages.size()) / 4, -1, size});
  return messages;
}

RailPlan best(const Sizes& sizes, const Speeds& speeds) { return assign_rails(messages_of(sizes), {.speeds = speeds}); }

RailPlan best_cut(const Sizes& sizes, const Speeds& speeds, std::int64_t min_piece = 1) {
  return assign_rails(messages_of(sizes), {.speeds = speeds, .cut = true, .min_piece = min_piece});
}

// Tries all assignments, message by message; only what is already too slow is left out.
double least_busy(const Sizes& sizes, const Speeds& speeds) {
  double least = std::numeric_limits<double>::infinity();
  Sizes loads(speeds.size());
  const auto place = [&](const auto& self, std::size_t message, double busiest) -> void {
    if (busiest >= least) return;
    if (message == sizes.size()) {
      least = busiest;
      return;
    }
    for (std::size_t rail = 0; rail < speeds.size(); ++rail) {
      loads[rail] += sizes[message];
      self(self, message + 1, std::max(busiest, static_cast<double>(loads[rail]) / speeds[rail]));
      loads[rail] -= sizes[message];
    }
  };
  place(place, 0, 0);
  return least;
}

// Every byte of every message is on one rail, the loads are those of the assignments, and no piece is too short.
void check_plan(const RailPlan& plan, const Sizes& sizes, const Speeds& speeds, std::int64_t min_piece) {
  Sizes loads(speeds.size());
  std::size_t next = 0;
  for (const std::int64_t size : sizes) {
    std::int64_t covered = 0;
    do {
      ASSERT_LT(next, plan.assignments.size());
      const RailAssignment& piece = plan.assignments[next++];
      ASSERT_EQ(piece.first_byte, covered);
      ASSERT_GE(piece.bytes, std::min(size, min_piece));
      covered += piece.bytes;
      loads.at(static_cast<std::size_t>(piece.rail)) += piece.bytes;
    } while (covered < size);
    ASSERT_EQ(covered, size);
  }
  EXPECT_EQ(next, plan.assignments.size());
  EXPECT_EQ(loads, plan.loads);
  double busiest = 0;
  for (std::size_t rail = 0; rail < loads.size(); ++rail) {
    busiest = std::max(busiest, static_cast<double>(loads[rail]) / speeds[rail]);
  }
  EXPECT_EQ(busiest, plan.busiest);
  EXPECT_LE(plan.lower_bound, plan.busiest);
}

double ideal(const Sizes& sizes, const Speeds& speeds) {
  return static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})) /
         std::accumulate(speeds.begin(), speeds.end(), 0.0);
}

struct Random {
  std::mt19937 engine;
  std::int64_t number(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(most - least + 1));
  }
  Sizes sizes(std::int64_t count, std::int64_t most) {
    Sizes result;
    for (std::int64_t i = 0; i < count; ++i) result.push_back(number(1, most));
    return result;
  }
  Speeds speeds(std::int64_t count, bool equal) {
    Speeds result;
    for (std::int64_t i = 0; i < count; ++i) result.push_back(equal ? 1 : static_cast<double>(number(1, 12)) / 2);
    return result;
  }
};

TEST(Rails, UpToTwelveMessagesAreExact) {
  Random random{std::mt19937(7)};
  for (int trial = 0; trial < 300; ++trial) {
    const Sizes sizes = random.sizes(random.number(1, trial < 290 ? 9 : 12), trial % 3 == 0 ? 6 : 100000);
    const Speeds speeds = random.speeds(random.number(1, trial < 290 ? 5 : 3), trial % 2 == 0);
    const RailPlan plan = best(sizes, speeds);
    check_plan(plan, sizes, speeds, 1);
    EXPECT_TRUE(plan.optimal);
    EXPECT_EQ(plan.busiest, least_busy(sizes, speeds)) << "trial " << trial;
  }
}

// More messages than the exact search takes. With four a rail, the lower bound is close to the optimum.
TEST(Rails, ManyMessagesAreWithinFivePercent) {
  Random random{std::mt19937(11)};
  double worst = 1;
  for (int trial = 0; trial < 200; ++trial) {
    const std::int64_t rails = random.number(2, 8);
    const Speeds speeds = random.speeds(rails, trial % 2 == 0);
    const Sizes sizes = random.sizes(random.number(rails * 4, rails * 30), 1000000);
    const RailPlan plan = best(sizes, speeds);
    check_plan(plan, sizes, speeds, 1);
    worst = std::max(worst, plan.busiest / plan.lower_bound);
  }
  EXPECT_LE(worst, 1.05);
}

// The local search alone, where the exact search (checked above) knows the optimum.
TEST(Rails, TheLocalSearchIsWithinFivePercentOfTheOptimum) {
  Random random{std::mt19937(13)};
  double worst = 1;
  for (int trial = 0; trial < 100; ++trial) {
    const Speeds speeds = random.speeds(random.number(2, 6), trial % 2 == 0);
    const detail::RailProblem problem{random.sizes(random.number(6, trial < 90 ? 11 : 13), 100000), speeds};
    const auto busiest = [&](const detail::RailChoice& choice) {
      return detail::busiest_rail(rail_loads(problem, choice), speeds);
    };
    const auto exact = detail::exact_choice(problem, 1e9);
    ASSERT_TRUE(exact);
    worst = std::max(worst, busiest(searched_choice(problem)) / busiest(*exact));
    EXPECT_LE(whole_bound(problem), busiest(*exact));
  }
  EXPECT_LE(worst, 1.05);
}

TEST(Rails, ManyEqualFacesAreExact) {
  // Four ranks, each with two faces of each size in four dimensions. Sizes are multiples of 24 with 3, 16, 24 and 32.
  Sizes sizes;
  for (int rank = 0; rank < 4; ++rank) {
    for (const std::int64_t size : {72, 384, 576, 768}) sizes.insert(sizes.end(), 2, size);
  }
  const RailPlan plan = best(sizes, Speeds(6, 1.0));
  EXPECT_TRUE(plan.optimal);
  // A rail with a faces of 3 and others of 8 b has 3a + 8b; 101 or less on all rails does not reach the sum of 600.
  EXPECT_EQ(plan.busiest, 102 * 24);
}

TEST(Rails, LongestFirstIsAsDefined) {
  const RailPlan plan = assign_rails(messages_of({2, 9, 4, 7}), {.speeds = {1, 2}, .rule = RailRule::longest_first});
  // 9 on rail 1 (4.5), 7 on rail 0 (7 < 8), 4 on rail 1 (6.5), 2 on rail 1 (7.5 < 9).
  EXPECT_EQ(plan.loads, (Sizes{7, 15}));
  EXPECT_EQ(plan.busiest, 7.5);
}

TEST(Rails, CutMessagesReachTheIdeal) {
  Random random{std::mt19937(17)};
  for (int trial = 0; trial < 200; ++trial) {
    const Speeds speeds = random.speeds(random.number(1, 8), trial % 2 == 0);
    const Sizes sizes = random.sizes(random.number(1, 20), 100000);
    const RailPlan plan = best_cut(sizes, speeds);
    check_plan(plan, sizes, speeds, 1);
    EXPECT_LE(plan.busiest, ideal(sizes, speeds) + 1 / *std::ranges::min_element(speeds));
    EXPECT_TRUE(plan.optimal) << "trial " << trial;
    EXPECT_LT(plan.assignments.size(), sizes.size() + speeds.size()) << "trial " << trial;
  }
}

TEST(Rails, PiecesAreNotShorterThanAsked) {
  Random random{std::mt19937(19)};
  for (int trial = 0; trial < 60; ++trial) {
    const std::int64_t piece = random.number(1, 4000);
    const Speeds speeds = random.speeds(random.number(1, 8), trial % 2 == 0);
    Sizes sizes = random.sizes(random.number(1, 20), 100000);
    for (std::int64_t& size : sizes) size += 2 * piece;
    const RailPlan plan = best_cut(sizes, speeds, piece);
    check_plan(plan, sizes, speeds, piece);
    EXPECT_LE(plan.busiest, best(sizes, speeds).busiest);
    const double slack = static_cast<double>(piece + 1) / *std::ranges::min_element(speeds);
    EXPECT_LE(plan.busiest, ideal(sizes, speeds) + slack) << "trial " << trial;
  }
}

TEST(Rails, MessagesTooShortToBeCutStayWhole) {
  const RailPlan plan = best_cut({10, 10, 10}, {1, 1}, 6);
  EXPECT_EQ(plan.assignments.size(), 3);
  EXPECT_EQ(plan.busiest, 20);
  EXPECT_TRUE(plan.optimal);
}

TEST(Rails, HugeSizesAndNoMessages) {
  constexpr std::int64_t huge = std::int64_t{1} << 61;
  EXPECT_EQ(best({huge, huge, huge}, {1, 1}).loads, (Sizes{2 * huge, huge}));
  const RailPlan cut = best_cut({huge, huge, huge}, {1, 1});
  EXPECT_NEAR(cut.busiest / (1.5 * static_cast<double>(huge)), 1, 1e-9);
  EXPECT_EQ(best({}, {1, 1}).busiest, 0);
  EXPECT_EQ(best_cut({}, {1, 1}).busiest, 0);
  EXPECT_EQ(best({0, 0}, {1, 1}).assignments.size(), 2);
  EXPECT_EQ(best_cut({0, 5, 0}, {1, 1}).busiest, 3);
}

TEST(Rails, ExtremeSpeeds) {
  const RailPlan plan = best({5, 7, 9}, {1e100, 1e-100});
  EXPECT_EQ(plan.loads, (Sizes{21, 0}));
  EXPECT_EQ(best_cut({5, 7, 9}, {1e100, 1e-100}).loads, (Sizes{21, 0}));
  EXPECT_EQ(best_cut({5, 7, 9}, {1e-100, 1e-100}).busiest, 11 / 1e-100);
}

// Sizes that no sums of equal makes level, and so many that the search ends at its limit.
TEST(Rails, ASearchThatGainsLittleEnds) {
  Sizes sizes;
  for (int i = 0; i < 100000; ++i) sizes.push_back(std::int64_t{1} << (i % 40));
  const Speeds speeds{1, 2, 3, 5, 7, 11.5};
  const RailPlan plan = best(sizes, speeds);
  EXPECT_LE(plan.busiest, 1.001 * ideal(sizes, speeds));
}

TEST(Rails, BadInputIsNamed) {
  const auto says = [](const std::vector<RailMessage>& messages, const RailOptions& options, const std::string& text) {
    testing::expect_says<BadInput>([&] { static_cast<void>(assign_rails(messages, options)); }, text);
  };
  const auto one = messages_of({5});
  for (const double wrong : {-1.0, std::nan(""), 1e-300})
    says(one, {.speeds = {1, wrong}}, "rail 1: expected a finite speed above 0");
  says(messages_of({-1}), {.speeds = {1}}, "message 0: expected 0 bytes or more, found -1");
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  says(messages_of({huge, huge}), {.speeds = {1}}, "below 2^63");
  says(one, {.speeds = {1}, .rule = RailRule::round_robin, .cut = true}, "found the rule round_robin");
  EXPECT_THROW(static_cast<void>(rail_rule_from_string("best")), BadInput);
  EXPECT_EQ(rail_rule_from_string("longest_first"), RailRule::longest_first);
  const std::vector<int> hosts{0};
  EXPECT_THROW(static_cast<void>(assign_rails(allgather(2, 1, 8), hosts, {.speeds = {1}})), BadInput);
}

}  // namespace
}  // namespace onehop
