#include "onehop/schedule.h"

#include <gtest/gtest.h>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "tests/support/random_halo.h"
#include "tests/support/random_schedule.h"
#include "tests/support/thrown.h"
#include "tests/support/two_to.h"

namespace onehop {
namespace {

using testing::message_of;
using testing::two_to;

Transfer move(int from, std::int64_t read, int to, std::int64_t write, std::int64_t count) {
  return {{from, 0, Slice::range(read, count)}, {to, 0, Slice::range(write, count)}, Combine::replace, Codec::raw};
}

// A ring of three ranks, in two rounds.
Schedule ring() {
  Schedule schedule{"ring", 3, {{"u", 8, ElementType::float64, {10}}}, {}, {}};
  schedule.rounds = {{{move(0, 0, 1, 5, 4), move(1, 0, 2, 5, 4), move(2, 0, 0, 5, 4)}}, {{move(1, 2, 1, 9, 1)}}};
  schedule.must_cover = {{1, 0, Slice::range(5, 5)}, {2, 0, Slice::range(5, 4)}};
  return schedule;
}

TEST(Schedule, NamesGoBothWays) {
  for (const auto combine : {Combine::replace, Combine::add, Combine::min, Combine::max, Combine::prod}) {
    EXPECT_EQ(combine_from_string(to_string(combine)), combine);
  }
  for (const auto type : {ElementType::bytes, ElementType::float32, ElementType::float64, ElementType::int32,
                          ElementType::int64, ElementType::float16, ElementType::bfloat16}) {
    EXPECT_EQ(element_type_from_string(to_string(type)), type);
  }
  EXPECT_EQ(bytes_of(ElementType::float32), 4);
  EXPECT_EQ(bytes_of(ElementType::int64), 8);
  EXPECT_EQ(bytes_of(ElementType::bfloat16), 2);
  EXPECT_EQ(message_of([] { (void)combine_from_string("sum"); }),
            "expected a way to combine (one of: replace, add, min, max, prod), found 'sum'");
  EXPECT_THROW((void)element_type_from_string("double"), BadInput);
}

TEST(Schedule, PartKeepsRoundsAndOrder) {
  const Schedule part = ring().part(2);
  ASSERT_EQ(part.rounds.size(), 2U);
  EXPECT_EQ(part.rounds[0].transfers, (std::vector{move(1, 0, 2, 5, 4), move(2, 0, 0, 5, 4)}));
  EXPECT_TRUE(part.rounds[1].transfers.empty());
  ASSERT_EQ(part.must_cover.size(), 1U);
  EXPECT_EQ(part.must_cover.front().rank, 2);
  EXPECT_EQ(part.arrays, ring().arrays);
  EXPECT_EQ(message_of([] { (void)ring().part(3); }), "part: expected a rank from 0 to 2, found 3");
  EXPECT_THROW((void)ring().part(-1), BadInput);
}

TEST(Schedule, BytesAndDescription) {
  const Schedule schedule = ring();
  EXPECT_EQ(schedule.bytes(schedule.rounds[0].transfers[1]), 32);
  EXPECT_EQ(describe(schedule, 0, 2), "round 0, transfer 2 (rank 2 array u -> rank 0 array u, 4 elements)");
  Transfer transfer = schedule.rounds[0].transfers[1];
  transfer.from.array = 4;
  EXPECT_EQ(message_of([&] { (void)schedule.bytes(transfer); }), "schedule: expected an array from 0 to 0, found 4");
}

TEST(Merge, PartsMakeTheWhole) {
  const Schedule whole = ring();
  std::vector<Schedule> parts;
  parts.reserve(3);
  for (int rank = 0; rank < 3; ++rank) parts.push_back(whole.part(rank));
  EXPECT_EQ(merge(parts), whole);
}

TEST(Merge, WhatOneSideLacksNamesBothRanks) {
  std::vector<Schedule> parts;
  parts.reserve(3);
  for (int rank = 0; rank < 3; ++rank) parts.push_back(ring().part(rank));

  auto broken = parts;
  broken[2].rounds[0].transfers.erase(broken[2].rounds[0].transfers.begin());
  EXPECT_EQ(message_of([&] { (void)merge(broken); }),
            "merge: rank 1 sends a transfer that the part of rank 2 does not have: in the part of rank 1 round 0, "
            "transfer 1 (rank 1 array u -> rank 2 array u, 4 elements)");

  broken = parts;
  broken[1].rounds[0].transfers.pop_back();
  EXPECT_EQ(message_of([&] { (void)merge(broken); }),
            "merge: rank 2 expects a transfer that the part of rank 1 does not have: in the part of rank 2 round 0, "
            "transfer 0 (rank 1 array u -> rank 2 array u, 4 elements)");

  broken = parts;
  broken[0].rounds[0].transfers[1] = move(2, 0, 0, 5, 3);
  EXPECT_EQ(
      message_of([&] { (void)merge(broken); }),
      "merge: rank 2 and rank 0 differ in a transfer: in the part of rank 2 round 0, transfer 1 (rank 2 array u -> "
      "rank 0 array u, 4 elements); in the part of rank 0 round 0, transfer 1 (rank 2 array u -> rank 0 array u, "
      "3 elements)");
  EXPECT_THROW((void)merge(broken), Mismatch);

  broken = parts;
  broken[1].arrays[0].element_bytes = 4;
  EXPECT_NE(message_of([&] { (void)merge(broken); }).find("the parts of rank 0 and rank 1 differ in their arrays"),
            std::string::npos);
}

TEST(Merge, BadInput) {
  std::vector<Schedule> parts{ring().part(0), ring().part(1)};
  EXPECT_NE(message_of([&] { (void)merge(parts); }).find("(3), found 2"), std::string::npos);
  EXPECT_THROW((void)merge({}), BadInput);
  parts = {ring(), ring().part(1), ring().part(2)};
  EXPECT_NE(message_of([&] { (void)merge(parts); }).find("only transfers from or to rank 0"), std::string::npos);
}

TEST(ScheduleJson, RoundTripsExactly) {
  testing::RandomSchedules schedules(5);
  for (int i = 0; i < 200; ++i) {
    const Schedule schedule = schedules.next();
    ASSERT_EQ(Schedule::from_json(schedule.to_json()), schedule) << schedule.to_json(2);
    ASSERT_EQ(Schedule::from_json(schedule.to_json(2)), schedule);
    ASSERT_EQ(Schedule::from_json(schedule.to_json()).to_json(), schedule.to_json());
  }
  std::mt19937 random(6);
  for (int i = 0; i < 15; ++i) {
    const Schedule schedule = halo(testing::random_halo(random));
    ASSERT_EQ(Schedule::from_json(schedule.to_json()), schedule);
  }
  Schedule odd{"quotes \" and \xc3\xa9", 2, {{"", 1, ElementType::bytes, {two_to(62), 3}}}, {{}, {}}, {}};
  odd.rounds[0].transfers = {{{0, 0, Slice()}, {1, 0, Slice::list({})}, Combine::replace, Codec::raw},
                             {{-4, 9, Slice::range(two_to(61), 1)}, {1, 0, Slice::range(0, 1)}}};
  EXPECT_EQ(Schedule::from_json(odd.to_json()), odd);
  EXPECT_TRUE(Schedule::from_json(odd.to_json()).rounds[0].transfers[0].to.slice.is_list());
}

constexpr const char* smallest = R"({"onehop_schedule": 1, "ranks": 1, "arrays": [], "rounds": []})";

TEST(ScheduleJson, WritesWhatAPersonCanRead) {
  Schedule schedule = ring();
  schedule.rounds.pop_back();
  schedule.rounds[0].transfers = {move(0, 0, 1, 5, 4)};
  schedule.must_cover.pop_back();
  EXPECT_EQ(schedule.to_json(2), R"({
  "onehop_schedule": 1,
  "name": "ring",
  "ranks": 3,
  "arrays": [{"name": "u", "element_bytes": 8, "type": "float64", "elements": 10}],
  "rounds": [
    {
      "transfers": [
        {
          "from": {"rank": 0, "array": 0, "slice": {"offset": 0, "extents": [4], "strides": [1]}},
          "to": {"rank": 1, "array": 0, "slice": {"offset": 5, "extents": [4], "strides": [1]}},
          "combine": "replace",
          "codec": "raw"
        }
      ]
    }
  ],
  "must_cover": [{"rank": 1, "array": 0, "slice": {"offset": 5, "extents": [5], "strides": [1]}}]
})");
  EXPECT_EQ(Schedule::from_json(smallest), Schedule{});
}

TEST(ScheduleJson, NamesThatAreNotUtf8AreRefused) {
  Schedule schedule = ring();
  schedule.name = "\xff";
  EXPECT_NE(message_of([&] { (void)schedule.to_json(); }).find("UTF-8"), std::string::npos);
  EXPECT_THROW((void)schedule.to_json(2), BadInput);
}

struct Corruption {
  const char* what;  // in the text of ring()
  const char* by;
  const char* message;
};

class ScheduleJsonErrors : public ::testing::TestWithParam<Corruption> {};

TEST_P(ScheduleJsonErrors, SayWhatAndWhere) {
  std::string text = ring().to_json(0);
  const auto at = text.find(GetParam().what);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, std::string(GetParam().what).size(), GetParam().by);
  EXPECT_THROW((void)Schedule::from_json(text), BadInput);
  const std::string message = message_of([&] { (void)Schedule::from_json(text); });
  EXPECT_EQ(message.substr(0, std::string(GetParam().message).size()), GetParam().message) << message;
}

INSTANTIATE_TEST_SUITE_P(
    All, ScheduleJsonErrors,
    ::testing::Values(
        Corruption{"{", "", "the schedule: expected JSON, found something else:"},
        Corruption{"\"onehop_schedule\": 1", "\"onehop_schedule\": 2",
                   "onehop_schedule: expected the format version 1, which this onehop reads, found 2"},
        Corruption{"\"onehop_schedule\": 1,", "", "the schedule: expected the key \"onehop_schedule\", found none"},
        Corruption{"\"name\"", "\"nmae\"",
                   "the schedule: expected only the keys onehop_schedule, ranks, arrays, rounds, name, must_cover, "
                   "found \"nmae\""},
        Corruption{"\"name\": \"ring\"", "\"name\": 3", "name: expected a string, found 3"},
        Corruption{"\"name\": \"ring\"", "\"name\": \"a\", \"name\": \"b\"",
                   "the schedule: expected every key once in an object, found \"name\" twice"},
        Corruption{"\"ranks\": 3", "\"ranks\": 0", "ranks: expected an integer from 1 to 1048576, found 0"},
        Corruption{"\"ranks\": 3", "\"ranks\": 3.0", "ranks: expected an integer from 1 to 1048576, found 3.0"},
        Corruption{"\"ranks\": 3", "\"ranks\": \"3\"", "ranks: expected an integer"},
        Corruption{"\"ranks\": 3", "\"ranks\": 2147483647", "ranks: expected an integer from 1 to 1048576, found"},
        Corruption{"\"ranks\": 3", "\"ranks\": 1e400",
                   "the schedule: expected JSON, found something else: line 4, column 14: number overflow"},
        Corruption{"\"ranks\": 3", "\"ranks\": \xc3\xa9",
                   "the schedule: expected JSON, found something else: line 4, column 10: syntax error"},
        Corruption{"\"offset\": 5", "\"offset\": 5, \"offset\": 5",
                   "the schedule: expected every key once in an object, found \"offset\" twice in "
                   "rounds[0].transfers[0].to.slice"},
        Corruption{"\"element_bytes\": 8", "\"element_bytes\": 18446744073709551615",
                   "arrays[0].element_bytes: expected an integer from 1 to 9223372036854775807"},
        Corruption{"\"offset\": 5", "\"offset\": 18446744073709551615",
                   "rounds[0].transfers[0].to.slice.offset: expected an integer from -9223372036854775808 to"},
        Corruption{"\"elements\": 10", "\"elements\": [10, 10]",
                   "arrays[0].elements: expected one number, or one for each of the 3 ranks, found 2"},
        Corruption{"\"elements\": 10", "\"elements\": -10", "arrays[0].elements: expected an integer from 0"},
        Corruption{"\"type\": \"float64\"", "\"type\": \"double\"",
                   "arrays[0].type: expected an element type (one of: bytes, float32, float64, int32, int64, float16, "
                   "bfloat16), found "},
        Corruption{"\"transfers\"", "\"transfer\"",
                   "rounds[0]: expected only the keys transfers, permutation, found \"transfer\""},
        Corruption{"\"extents\": [4]", "\"extents\": [-4]",
                   "rounds[0].transfers[0].from.slice.extents[0]: expected an integer from 0 to"},
        Corruption{
            "\"extents\": [4]", "\"extents\": [4, 1]",
            "rounds[0].transfers[0].from.slice: slice: expected extents and strides of equal length, found 2 and 1"},
        Corruption{"\"extents\": [4]", "\"extents\": 4",
                   "rounds[0].transfers[0].from.slice.extents: expected an array, "},
        Corruption{"\"strides\": [1]", "\"strides\": [-1]",
                   "rounds[0].transfers[0].from.slice: slice: expected element numbers of 0 or more, found -3"},
        Corruption{"\"offset\": 5, ", "", "rounds[0].transfers[0].to.slice: expected the key \"offset\", found none"},
        Corruption{
            "{\"offset\": 5, \"extents\": [4], \"strides\": [1]}", "{\"indices\": [1, null]}",
            "rounds[0].transfers[0].to.slice.indices[1]: expected an integer from 0 to 9223372036854775807, found "
            "null"},
        Corruption{"{\"offset\": 5, \"extents\": [4], \"strides\": [1]}", "[1, 2]",
                   "rounds[0].transfers[0].to.slice: expected an object, found [1,2]"},
        Corruption{"\"combine\": \"replace\"", "\"combine\": \"xor\"",
                   "rounds[0].transfers[0].combine: expected a way to combine"},
        Corruption{"\"codec\": \"raw\"", "\"codec\": \"zip\"",
                   "rounds[0].transfers[0].codec: expected a codec (one of: raw, "},
        Corruption{"\"must_cover\": [", "\"must_cover\": [7, ", "must_cover[0]: expected an object, found 7"}));

TEST(ScheduleJson, BracketsInEachOtherAreLimited) {
  const std::string open(1'000'000, '[');
  const std::string close(1'000'000, ']');
  for (const std::string& value : {open, open + close}) {
    const std::string text = R"({"onehop_schedule": 1, "ranks": )" + value + R"(, "arrays": [], "rounds": []})";
    EXPECT_THROW((void)Schedule::from_json(text), BadInput);
    EXPECT_NE(message_of([&] { (void)Schedule::from_json(text); }).find("at most 32 brackets"), std::string::npos);
  }
}

}  // namespace
}  // namespace onehop
