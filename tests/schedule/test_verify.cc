#include "onehop/verify.h"

#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <set>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "tests/support/naive_execute.h"
#include "tests/support/random_halo.h"
#include "tests/support/random_schedule.h"
#include "tests/support/two_to.h"

namespace onehop {
namespace {

using testing::two_to;

using Rule = Violation::Rule;

// Four ranks in a 2-D halo with corners: verified in test_halo.cc, deliberately broken here.
Schedule sound() {
  HaloSpec spec{
      .extents = {8, 8}, .grid = {2, 2}, .widths = {{1, 2}, {2, 1}}, .periodic = {true, false}, .corners = true};
  return halo(spec);
}

Transfer transfer(int from, Slice read, int to, Slice write, Combine combine = Combine::replace) {
  return {{from, 0, std::move(read)}, {to, 0, std::move(write)}, combine, Codec::raw};
}

Schedule one_round(std::vector<Transfer> transfers) {
  Schedule schedule{"", 3, {{"u", 8, ElementType::float64, {20}}}, {Round{}}, {}};
  schedule.rounds[0].transfers = std::move(transfers);
  return schedule;
}

void expect_only(const Schedule& schedule, Rule rule, int round, int transfer, int other, const std::string& text) {
  const auto violations = verify(schedule);
  ASSERT_EQ(violations.size(), 1U) << (violations.empty() ? "found none" : violations[1].message);
  const Violation& violation = violations.front();
  EXPECT_EQ(violation.rule, rule) << violation.message;
  EXPECT_EQ(violation.round, round) << violation.message;
  EXPECT_EQ(violation.transfer, transfer) << violation.message;
  EXPECT_EQ(violation.other, other) << violation.message;
  EXPECT_NE(violation.message.find(text), std::string::npos) << violation.message;
  EXPECT_EQ(violation.message.find(to_string(rule)), 0U);
  EXPECT_THROW(verify_or_throw(schedule), BadInput);
}

TEST(Verify, ASoundScheduleHasNoViolations) {
  EXPECT_TRUE(verify(sound()).empty());
  EXPECT_NO_THROW(verify_or_throw(sound()));
  EXPECT_TRUE(verify(Schedule{}).empty());
}

TEST(Verify, EveryDroppedTransferLeavesElementsUncovered) {
  const auto transfers = sound().rounds[0].transfers.size();
  ASSERT_EQ(transfers, 20U);
  for (std::size_t t = 0; t < transfers; ++t) {
    Schedule schedule = sound();
    auto& kept = schedule.rounds[0].transfers;
    const Place lost = kept[t].to;
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(t));
    const auto violations = verify(schedule);
    ASSERT_EQ(violations.size(), 1U);
    EXPECT_EQ(violations[0].rule, Rule::coverage);
    const Place& place = schedule.must_cover.at(static_cast<std::size_t>(violations[0].transfer));
    EXPECT_EQ(place.rank, lost.rank);
    const auto missing = testing::elements_of(lost.slice);
    EXPECT_NE(violations[0].message.find("writes element " + std::to_string(missing.front()) + ":"), std::string::npos)
        << violations[0].message;
  }
}

TEST(Verify, EveryRepeatedWriteNamesBoth) {
  const auto transfers = static_cast<int>(sound().rounds[0].transfers.size());
  for (int t = 0; t < transfers; ++t) {
    Schedule schedule = sound();
    schedule.rounds[0].transfers.push_back(schedule.rounds[0].transfers[static_cast<std::size_t>(t)]);
    expect_only(schedule, Rule::writes, 0, transfers, t, describe(schedule, 0, t));
  }
}

TEST(Verify, ShapeOfTransfers) {
  const Slice two = Slice::range(0, 2);
  expect_only(one_round({transfer(0, two, 1, Slice::range(18, 3))}), Rule::shape, 0, 0, -1,
              "to: expected elements below 20, which is the length of array u on rank 1, found element 20");
  expect_only(one_round({transfer(0, Slice::range(19, 2), 1, two)}), Rule::shape, 0, 0, -1, "from: expected elements");
  expect_only(one_round({transfer(0, two, 3, two)}), Rule::shape, 0, 0, -1, "expected a rank from 0 to 2, found 3");
  expect_only(one_round({transfer(-1, two, 2, two)}), Rule::shape, 0, 0, -1, "expected a rank from 0 to 2, found -1");
  expect_only(one_round({transfer(0, two, 1, Slice::range(4, 3))}), Rule::shape, 0, 0, -1,
              "expected ends of equal size, found 2 elements from and 3 to");
  Schedule schedule = one_round({transfer(0, two, 1, two), transfer(1, two, 2, Slice::range(6, 2))});
  schedule.rounds[0].transfers[1].to.array = 7;
  expect_only(schedule, Rule::shape, 0, 1, -1, "expected an array from 0 to 0, found 7");

  schedule = one_round({transfer(0, two, 1, two, Combine::add)});
  schedule.arrays.push_back({"w", 8, ElementType::int64, {20}});
  EXPECT_TRUE(verify(schedule).empty());
  schedule.rounds[0].transfers[0].to.array = 1;
  expect_only(schedule, Rule::shape, 0, 0, -1, "combine add, found float64 and int64");
  schedule.rounds[0].transfers[0].combine = Combine::replace;
  EXPECT_TRUE(verify(schedule).empty()) << "eight bytes go over eight bytes, whatever they mean";
  schedule.arrays[1] = {"w", 4, ElementType::int32, {20}};
  expect_only(schedule, Rule::shape, 0, 0, -1, "8 bytes in array u and 4 in array w");
  schedule = one_round({transfer(0, two, 1, two, Combine::max)});
  schedule.arrays[0].type = ElementType::bytes;
  expect_only(schedule, Rule::shape, 0, 0, -1, "combine max, found bytes and bytes");
}

TEST(Verify, ShapeOfArrays) {
  const auto with = [](const ArraySpec& array) { return Schedule{"", 2, {array}, {}, {}}; };
  const auto expect = [&](const ArraySpec& array, const std::string& text) {
    expect_only(with(array), Rule::shape, -1, -1, -1, text);
  };
  expect({"u", 0, ElementType::bytes, {4}}, "array u: expected element_bytes of 1 or more, found 0");
  expect({"u", 4, ElementType::float64, {4}}, "expected element_bytes of 8, or a multiple of it, for float64, found 4");
  expect({"u", 8, ElementType::bytes, {}}, "each of the 2 ranks, found 0 numbers");
  expect({"u", 8, ElementType::bytes, {1, 2, 3}}, "each of the 2 ranks, found 3 numbers");
  expect({"u", 8, ElementType::bytes, {1, -2}}, "expected 0 elements or more, found -2");
  expect({"u", 8, ElementType::bytes, {two_to(61), 1}}, "expected fewer than 2^63 bytes");
  expect_only(Schedule{"", 0, {}, {}, {}}, Rule::shape, -1, -1, -1, "1 to 1048576 ranks, found 0");
}

TEST(Verify, WritesWithinOneTransfer) {
  const std::int64_t three = 3;
  const std::int64_t zero = 0;
  expect_only(one_round({transfer(0, Slice::range(0, 3), 1, Slice::list({4, 5, 4}))}), Rule::writes, 0, 0, 0,
              "writes element 4 of array u on rank 1, expected no other write to it in this round, found one by the "
              "transfer itself");
  expect_only(one_round({transfer(0, Slice::range(0, 3), 1, Slice::box(2, {&three, 1}, {&zero, 1}))}), Rule::writes, 0,
              0, 0, "element 2");
  EXPECT_TRUE(verify(one_round({transfer(0, Slice::box(2, {&three, 1}, {&zero, 1}), 1, Slice::range(0, 3))})).empty())
      << "one element may be read by many";
}

TEST(Verify, CombiningWritesMayMeetIfTheyCombineAlike) {
  const Slice here = Slice::range(0, 4);
  const Slice there = Slice::range(8, 4);
  EXPECT_TRUE(verify(one_round({transfer(0, here, 2, there, Combine::add), transfer(1, here, 2, there, Combine::add)}))
                  .empty());
  expect_only(one_round({transfer(0, here, 2, there, Combine::add), transfer(1, here, 2, there, Combine::max)}),
              Rule::writes, 0, 1, 0, "element 8");
  expect_only(one_round({transfer(0, here, 2, there, Combine::add), transfer(1, here, 2, there)}), Rule::writes, 0, 1,
              0, "element 8");
  expect_only(one_round({transfer(0, here, 2, there), transfer(1, here, 2, Slice::range(11, 4), Combine::min)}),
              Rule::writes, 0, 1, 0, "element 11");
}

TEST(Verify, ReadsOfWhatIsWritten) {
  const Slice a = Slice::range(0, 4);
  const Slice b = Slice::range(3, 4);
  expect_only(one_round({transfer(0, a, 1, a), transfer(1, b, 2, a)}), Rule::reads, 0, 1, 0,
              "reads element 3 of array u on rank 1, expected no write to it in this round, found one by round "
              "0, transfer 0");
  expect_only(one_round({transfer(0, a, 0, b)}), Rule::reads, 0, 0, 0, "element 3");
  EXPECT_TRUE(verify(one_round({transfer(0, a, 0, Slice::range(4, 4))})).empty());
}

TEST(Verify, AnExactExchangeIsAccepted) {
  const std::int64_t extents[] = {3, 2};
  const std::int64_t strides[] = {5, 1};
  const Slice a = Slice::box(1, extents, strides);
  const Slice b = Slice::range(10, 6);
  const Slice as_list = Slice::list({1, 2, 6, 7, 11, 12});
  EXPECT_TRUE(verify(one_round({transfer(0, a, 1, b), transfer(1, b, 0, a)})).empty());
  EXPECT_TRUE(verify(one_round({transfer(0, a, 1, b), transfer(1, b, 0, as_list)})).empty()) << "the same elements";
  EXPECT_TRUE(verify(one_round({transfer(0, a, 1, b, Combine::add), transfer(1, b, 0, a, Combine::add)})).empty());
}

TEST(Verify, AnInexactExchangeIsNot) {
  const Slice a = Slice::range(0, 4);
  const Slice b = Slice::range(10, 4);
  const auto rules_of = [](const Schedule& schedule) {
    std::set<Rule> rules;
    for (const Violation& v : verify(schedule)) rules.insert(v.rule);
    return rules;
  };
  const std::set<Rule> reads{Rule::reads};
  EXPECT_EQ(rules_of(one_round({transfer(0, a, 1, b), transfer(1, b, 0, Slice::list({1, 0, 2, 3}))})), reads)
      << "another order";
  EXPECT_EQ(rules_of(one_round({transfer(0, a, 1, b), transfer(1, b, 0, Slice::range(1, 4))})), reads);
  EXPECT_EQ(rules_of(one_round({transfer(0, a, 1, b), transfer(1, b, 2, a), transfer(2, a, 0, a)})), reads)
      << "three in a ring";
  EXPECT_EQ(rules_of(one_round({transfer(0, a, 0, b), transfer(0, b, 0, a)})), reads) << "within one rank";
  EXPECT_EQ(rules_of(one_round({transfer(0, a, 1, b), transfer(1, b, 0, a), transfer(0, a, 2, a)})), reads)
      << "a third reads too";
  expect_only(one_round({transfer(0, a, 1, b, Combine::add), transfer(1, b, 0, a, Combine::add),
                         transfer(2, a, 1, Slice::range(13, 4), Combine::add)}),
              Rule::reads, 0, 1, 0, "reads element 13");
}

TEST(Verify, Coverage) {
  Schedule schedule = one_round({transfer(0, Slice::range(0, 4), 1, Slice::range(5, 4))});
  schedule.rounds.push_back({{transfer(0, Slice::range(0, 4), 1, Slice::range(9, 4))}});
  schedule.must_cover = {{1, 0, Slice::range(5, 8)}};
  EXPECT_TRUE(verify(schedule).empty()) << "two rounds cover it together";
  schedule.must_cover.push_back({1, 0, Slice::range(12, 3)});
  expect_only(
      schedule, Rule::coverage, -1, 1, -1,
      "must_cover[1] (array u on rank 1, 3 elements): expected every element to be written by some round, found "
      "none that writes element 13");
  schedule.must_cover[1] = {2, 0, Slice::range(0, 1)};
  expect_only(schedule, Rule::coverage, -1, 1, -1, "on rank 2");
  schedule.must_cover[1] = {2, 0, Slice::range(19, 2)};
  expect_only(schedule, Rule::coverage, -1, 1, -1, "expected elements below 20");
  schedule.must_cover[1] = {2, 1, Slice()};
  expect_only(schedule, Rule::coverage, -1, 1, -1, "expected an array from 0 to 0, found 1");
}

TEST(Verify, LimitStopsTheSearch) {
  Schedule schedule = sound();
  const auto transfers = schedule.rounds[0].transfers;
  schedule.rounds[0].transfers.insert(schedule.rounds[0].transfers.end(), transfers.begin(), transfers.end());
  EXPECT_EQ(verify(schedule).size(), 10U);
  EXPECT_EQ(verify(schedule, 3).size(), 3U);
  EXPECT_EQ(verify(schedule, 1000).size(), transfers.size());
  EXPECT_THROW((void)verify(schedule, 0), BadInput);
}

// A direct implementation of the rules in verify.h for one round, element by element.
class PlainRules {
 public:
  explicit PlainRules(const Round& round) : transfers_(round.transfers) {
    for (std::size_t t = 0; t < transfers_.size(); ++t) {
      for (const auto& e : elements(transfers_[t].to)) writers_[e].push_back(t);
    }
  }

  [[nodiscard]] bool collide(std::size_t later, std::size_t earlier) const {
    for (const auto& [element, writers] : writers_) {
      const auto times = [&](std::size_t t) { return std::ranges::count(writers, t); };
      const bool meet = later == earlier ? times(later) > 1 : times(later) > 0 && times(earlier) > 0;
      if (meet && !combine_alike(transfers_[later], transfers_[earlier])) return true;
    }
    return false;
  }

  [[nodiscard]] bool any_collide() const {
    for (std::size_t later = 0; later < transfers_.size(); ++later) {
      for (std::size_t earlier = 0; earlier <= later; ++earlier) {
        if (collide(later, earlier)) return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool reads_wrongly(std::size_t u) const {
    for (const auto& element : elements(transfers_[u].from)) {
      const auto found = writers_.find(element);
      if (found == writers_.end()) continue;
      if (found->second.size() > 1 || !exchange(transfers_[u], transfers_[found->second.front()])) return true;
    }
    return false;
  }

 private:
  using Element = std::tuple<int, int, std::int64_t>;

  static std::vector<Element> elements(const Place& place) {
    std::vector<Element> all;
    for (const auto e : testing::elements_of(place.slice)) all.emplace_back(place.rank, place.array, e);
    return all;
  }
  static bool combine_alike(const Transfer& a, const Transfer& b) {
    return a.combine == b.combine && a.combine != Combine::replace;
  }
  static bool exchange(const Transfer& a, const Transfer& b) {
    return a.from.rank != a.to.rank && elements(a.from) == elements(b.to) && elements(a.to) == elements(b.from);
  }

  std::vector<Transfer> transfers_;
  std::map<Element, std::vector<std::size_t>> writers_;
};

std::set<std::size_t> uncovered(const Schedule& schedule) {
  std::set<std::tuple<int, int, std::int64_t>> written;
  for (const Round& round : schedule.rounds) {
    for (const Transfer& t : round.transfers) {
      for (const auto e : testing::elements_of(t.to.slice)) written.emplace(t.to.rank, t.to.array, e);
    }
  }
  std::set<std::size_t> places;
  for (std::size_t i = 0; i < schedule.must_cover.size(); ++i) {
    const Place& place = schedule.must_cover[i];
    for (const auto e : testing::elements_of(place.slice)) {
      if (!written.contains({place.rank, place.array, e})) places.insert(i);
    }
  }
  return places;
}

TEST(Verify, AgreesWithThePlainRulesOnRandomSchedules) {
  testing::RandomSchedules schedules(11);
  int sound_ones = 0;
  int broken_reads = 0;
  for (int i = 0; i < 4000; ++i) {
    const Schedule schedule = schedules.next();
    const auto violations = verify(schedule, 1000);
    sound_ones += violations.empty();
    std::set<std::size_t> places;
    for (std::size_t r = 0; r < schedule.rounds.size(); ++r) {
      const PlainRules rules(schedule.rounds[r]);
      std::set<std::size_t> reads;
      bool writes = false;
      for (const Violation& v : violations) {
        if (v.rule == Rule::coverage) places.insert(static_cast<std::size_t>(v.transfer));
        if (v.round != static_cast<int>(r)) continue;
        const auto transfer = static_cast<std::size_t>(v.transfer);
        if (v.rule == Rule::reads) reads.insert(transfer);
        if (v.rule != Rule::writes) continue;
        writes = true;
        ASSERT_TRUE(rules.collide(transfer, static_cast<std::size_t>(v.other))) << v.message << schedule.to_json(2);
      }
      ASSERT_EQ(writes, rules.any_collide()) << schedule.to_json(2);
      if (writes) continue;
      for (std::size_t t = 0; t < schedule.rounds[r].transfers.size(); ++t) {
        ASSERT_EQ(reads.contains(t), rules.reads_wrongly(t))
            << describe(schedule, static_cast<int>(r), static_cast<int>(t)) << schedule.to_json(2);
      }
      broken_reads += !reads.empty();
    }
    if (!schedule.rounds.empty()) {
      ASSERT_EQ(places, uncovered(schedule)) << schedule.to_json(2);
    }
  }
  EXPECT_GT(sound_ones, 200);
  EXPECT_GT(broken_reads, 200);
}

TEST(Verify, LargeArraysCostOnlyWhatMoves) {
  // 2^44 elements per rank, of which the first, the last and some in between move.
  const std::int64_t length = two_to(44);
  Schedule schedule{"", 2, {{"u", 8, ElementType::float64, {length}}}, {Round{}}, {}};
  const std::int64_t extents[] = {64, 3};
  const std::int64_t strides[] = {length / 64, 1};
  const Slice thin = Slice::box(0, extents, strides);
  const Slice end = Slice::range(length - 192, 192);
  schedule.rounds[0].transfers = {transfer(0, thin, 1, thin), transfer(0, end, 1, end)};
  schedule.must_cover = {{1, 0, Slice::range(length - 1, 1)}};
  EXPECT_TRUE(verify(schedule).empty());
  schedule.rounds[0].transfers.push_back(transfer(0, Slice::range(0, 1), 1, Slice::range(length - 1, 1)));
  expect_only(schedule, Rule::writes, 0, 2, 1, "element " + std::to_string(length - 1));
}

TEST(Verify, AThousandRanksTakeLessThanASecond) {
  HaloSpec spec{.extents = {160, 160, 160},
                .grid = {10, 10, 10},
                .widths = {{1, 1}, {1, 1}, {1, 1}},
                .periodic = {true, true, true},
                .corners = true};
  const Schedule schedule = halo(spec);
  const std::clock_t begin = std::clock();  // of this process alone: others may keep the machine busy
  EXPECT_TRUE(verify(schedule).empty());
  // About 50 ms; longer with sanitizers, far longer for any quadratic algorithm.
  EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace onehop
