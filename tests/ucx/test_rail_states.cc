// Which rails two ranks find to work, from signs of life that some rails lose.
#include "src/ucx/rail_states.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace onehop::detail::ucx {
namespace {

// Two ranks on three rails. A step is the time between two signs of life.
class Pair {
 public:
  Pair() {
    for (int rank : {0, 1}) states_[rank].set_rails(1 - rank, 3);
  }
  // Rail `rail` loses (or not) what rank `from` sends.
  void lose(int from, int rail, bool lost = true) { lost_[from][rail] = lost; }
  void steps(int count) {
    for (int k = 0; k < count; ++k) {
      ++number_;
      for (int rank : {0, 1}) {
        const Sign sign{rank, number_, states_[rank].heard(1 - rank)};
        std::array<Look, 3> looks;
        for (int rail = 0; rail < 3; ++rail) {
          if (lost_[rank][rail]) continue;
          looks[rail] = {.heard = true, .sign = true};
          states_[1 - rank].take(sign);
        }
        states_[1 - rank].look(rank, looks, number_ * 0.5);
      }
      for (int rank : {0, 1}) states_[rank].decide(1 - rank);
    }
  }
  std::uint64_t working(int rank) { return states_[rank].working(1 - rank); }
  RailStates& states(int rank) { return states_[rank]; }

 private:
  std::array<RailStates, 2> states_{RailStates(2), RailStates(2)};
  std::array<std::array<bool, 3>, 2> lost_{};
  std::uint32_t number_ = 0;
};

void expect_both(Pair& pair, std::uint64_t rails) {
  EXPECT_EQ(pair.working(0), rails);
  EXPECT_EQ(pair.working(1), rails);
}

TEST(UcxRailStates, ARailThatLosesOneDirectionIsDownForBothUntilItWorks) {
  for (const int from : {0, 1}) {
    Pair pair;
    pair.lose(from, 1);
    pair.steps(RailStates::most_missed - 1);
    expect_both(pair, 0b111);
    pair.steps(2);
    expect_both(pair, 0b101);
    pair.steps(20);  // the other direction arrives all the time
    expect_both(pair, 0b101);
    pair.lose(from, 1, false);
    pair.steps(2);
    expect_both(pair, 0b111);
  }
}

TEST(UcxRailStates, OneAfterTheOtherAndBack) {
  Pair pair;
  for (const int rank : {0, 1}) pair.lose(rank, 0);
  pair.steps(5);
  expect_both(pair, 0b110);
  for (const int rank : {0, 1}) pair.lose(rank, 2);
  pair.steps(5);
  expect_both(pair, 0b010);
  for (const int rank : {0, 1}) pair.lose(rank, 0, false);
  pair.steps(3);
  expect_both(pair, 0b011);
}

TEST(UcxRailStates, SilenceOnAllRailsSaysNothingAboutOne) {
  Pair pair;
  for (int rail = 0; rail < 3; ++rail) pair.lose(1, rail);
  pair.steps(100);
  expect_both(pair, 0b111);
}

TEST(UcxRailStates, SomeRailAlwaysStays) {
  Pair pair;
  pair.lose(0, 0);
  pair.lose(1, 1);
  pair.lose(0, 2);
  pair.lose(1, 2);
  pair.steps(20);
  EXPECT_NE(pair.working(0), 0);
  EXPECT_NE(pair.working(1), 0);
}

TEST(UcxRailStates, AFailedRailIsDownAtOnceAndAClosedGroupIsNot) {
  RailStates states(2);
  states.set_rails(1, 2);
  const std::vector<Look> failed{{.heard = true, .sign = true}, {.failed = true}};
  states.look(1, failed, 1);
  states.decide(1);
  EXPECT_EQ(states.working(1), 0b01);
  RailStates closed(2);
  closed.set_rails(1, 2);
  const std::vector<Look> leaves{{.heard = true, .sign = true, .leaves = true}, {}};
  for (int k = 0; k < 10; ++k) closed.look(1, leaves, 1);
  closed.decide(1);
  EXPECT_EQ(closed.working(1), 0b11);
}

TEST(UcxRailStates, ARankThatHasLeftIsLostThoughARailWasDown) {
  RailStates states(2);
  states.set_rails(1, 2);
  const Look gone{.leaves = true, .failed = true};
  states.look(1, std::vector{gone, Look{.heard = true}}, 10);
  states.look(1, std::vector{gone, Look{}}, 10 + RailStates::grace);
  states.look(1, std::vector{gone, Look{}}, 10.1 + RailStates::grace);
  EXPECT_FALSE(states.lost(1));
  states.look(1, std::vector{gone, Look{}}, 10.1 + 2 * RailStates::grace);
  EXPECT_TRUE(states.lost(1));
}

TEST(UcxRailStates, ARankIsLostIfAllRailsFailOrTheLastOneThatIsHeard) {
  const Look heard{.heard = true, .sign = true};
  const Look failed{.failed = true};
  RailStates states(4);
  for (const int rank : {1, 2, 3}) states.set_rails(rank, 2);
  states.look(1, std::vector{failed, heard}, 10);
  EXPECT_FALSE(states.lost(1));
  states.look(1, std::vector{failed, failed}, 10.1);
  EXPECT_FALSE(states.lost(1));
  states.look(1, std::vector{failed, failed}, 10.2 + RailStates::grace_failed);
  EXPECT_TRUE(states.lost(1));
  // Rail 0 is down in silence, then rail 1 fails, and is made anew in vain.
  for (int k = 0; k < 5; ++k) states.look(2, std::vector{Look{}, heard}, 10);
  states.look(2, std::vector{Look{}, failed}, 11);
  states.look(2, std::vector{Look{}, Look{}}, 11 + RailStates::grace / 2);
  EXPECT_FALSE(states.lost(2));
  states.look(2, std::vector{Look{}, Look{}}, 11.1 + RailStates::grace);
  EXPECT_TRUE(states.lost(2));
  // The same, but it is heard in time.
  for (int k = 0; k < 5; ++k) states.look(3, std::vector{Look{}, heard}, 10);
  states.look(3, std::vector{Look{}, failed}, 11);
  states.look(3, std::vector{Look{}, heard}, 12);
  states.look(3, std::vector{Look{}, heard}, 20);
  EXPECT_FALSE(states.lost(3));
}

TEST(UcxRailStates, AnOldSignOrOneOfAStrangerChangesNothing) {
  RailStates states(2);
  states.set_rails(1, 2);
  EXPECT_TRUE(states.take({1, 7, 0b01}));
  EXPECT_FALSE(states.take({1, 6, 0b11}));
  EXPECT_FALSE(states.take({2, 9, 0b11}));
  EXPECT_FALSE(states.take({-1, 9, 0b11}));
  states.decide(1);
  EXPECT_EQ(states.working(1), 0b01);
}

}  // namespace
}  // namespace onehop::detail::ucx
