// The choice between two kinds of stores, with artificial times.
#include "src/channel/store_decision.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace onehop {
namespace {

constexpr StoreKind usual = StoreKind::nontemporal;
constexpr StoreKind other = StoreKind::plain;

// Runs operations whose time is time(kind, number); returns how many used each kind.
std::array<int, 2> run(StoreDecision& decision, int operations, const std::function<double(StoreKind, int)>& time,
                       StoreKind& now) {
  std::array<int, 2> went{};
  for (int i = 0; i < operations; ++i) {
    const StoreKind next = decision.next();
    ++went[now == usual ? 0 : 1];
    decision.took(now, time(now, i));
    now = next;
  }
  return went;
}

TEST(StoreDecision, KeepsTheUsualWayWhereTheOtherIsWorse) {
  StoreDecision decision(usual, other);
  StoreKind now = usual;
  run(decision, 2000, [](StoreKind kind, int) { return kind == usual ? 100 : 500; }, now);
  EXPECT_EQ(decision.chosen(), usual);
  const auto went = run(decision, 10000, [](StoreKind kind, int) { return kind == usual ? 100 : 500; }, now);
  EXPECT_LE(went[1], 50);
  EXPECT_GE(went[1], 20);  // it keeps trying the other kind
}

TEST(StoreDecision, ChangesWhereTheOtherIsBetter) {
  StoreDecision decision(usual, other);
  StoreKind now = usual;
  const auto went = run(decision, 1000, [](StoreKind kind, int) { return kind == usual ? 100 : 60; }, now);
  EXPECT_EQ(decision.chosen(), other);
  EXPECT_GE(went[1], 900);
}

TEST(StoreDecision, AFewPerCentAreNotWorthIt) {
  StoreDecision decision(usual, other);
  StoreKind now = usual;
  run(decision, 3000, [](StoreKind kind, int) { return kind == usual ? 100 : 96; }, now);
  EXPECT_EQ(decision.chosen(), usual);
}

TEST(StoreDecision, OneSlowOperationDecidesNothing) {
  StoreDecision decision(usual, other);
  StoreKind now = usual;
  const auto time = [](StoreKind kind, int i) { return (kind == usual ? 100.0 : 60.0) * (i % 7 == 3 ? 20 : 1); };
  run(decision, 3000, time, now);
  EXPECT_EQ(decision.chosen(), other);
}

// A change of the machine's state is soon noticed in both directions.
TEST(StoreDecision, FollowsTheMachine) {
  StoreDecision decision(usual, other);
  StoreKind now = usual;
  const auto near = [](StoreKind kind, int) { return kind == usual ? 100 : 60; };
  const auto far = [](StoreKind kind, int) { return kind == usual ? 100 : 500; };
  run(decision, 500, near, now);
  EXPECT_EQ(decision.chosen(), other);
  const auto went = run(decision, 100, far, now);
  EXPECT_EQ(decision.chosen(), usual);
  EXPECT_LE(went[1], 8);
  run(decision, 1200, near, now);
  EXPECT_EQ(decision.chosen(), other);
}

}  // namespace
}  // namespace onehop
