#include "onehop/count.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "tests/support/naive_execute.h"
#include "tests/support/random_halo.h"
#include "tests/support/random_schedule.h"
#include "tests/support/thrown.h"
#include "tests/support/two_to.h"

namespace onehop {
namespace {

using testing::two_to;

std::int64_t runs_of(const Slice& slice) {
  const auto elements = testing::elements_of(slice);
  std::int64_t runs = elements.empty() ? 0 : 1;
  for (std::size_t i = 1; i < elements.size(); ++i) runs += elements[i] != elements[i - 1] + 1;
  return runs;
}

// The definitions of count.h, one number at a time.
void expect_count(const Schedule& schedule) {
  const Count counted = count(schedule);
  std::map<std::pair<int, int>, PairCount> pairs;
  std::set<std::tuple<std::size_t, int, int>> messages;
  std::set<std::size_t> rounds;
  std::vector<RankCount> ranks(static_cast<std::size_t>(schedule.ranks));
  for (std::size_t round = 0; round < schedule.rounds.size(); ++round) {
    for (const Transfer& t : schedule.rounds[round].transfers) {
      const auto elements = static_cast<std::int64_t>(testing::elements_of(t.from.slice).size());
      if (elements == 0) continue;
      rounds.insert(round);
      const std::int64_t bytes = elements * schedule.arrays.at(static_cast<std::size_t>(t.from.array)).element_bytes;
      RankCount& sender = ranks.at(static_cast<std::size_t>(t.from.rank));
      RankCount& receiver = ranks.at(static_cast<std::size_t>(t.to.rank));
      if (t.from.rank == t.to.rank) {
        sender.bytes_local += bytes;
        continue;
      }
      const bool is_new = messages.insert({round, t.from.rank, t.to.rank}).second;
      PairCount& pair = pairs[{t.from.rank, t.to.rank}];
      pair.from = t.from.rank;
      pair.to = t.to.rank;
      pair.messages += is_new;
      pair.bytes += bytes;
      pair.pieces += runs_of(t.from.slice);
      pair.pieces_received += runs_of(t.to.slice);
      sender.messages_sent += is_new;
      sender.bytes_sent += bytes;
      sender.pieces_sent += runs_of(t.from.slice);
      receiver.messages_received += is_new;
      receiver.bytes_received += bytes;
      receiver.pieces_received += runs_of(t.to.slice);
    }
  }
  std::vector<PairCount> sorted;
  std::int64_t bytes = 0;
  for (const auto& [ends, pair] : pairs) {
    sorted.push_back(pair);
    bytes += pair.bytes;
  }
  std::int64_t bytes_local = 0;
  for (const RankCount& rank : ranks) bytes_local += rank.bytes_local;
  ASSERT_EQ(counted.pairs, sorted);
  ASSERT_EQ(counted.ranks, ranks);
  ASSERT_EQ(counted.rounds, static_cast<int>(rounds.size()));
  ASSERT_EQ(counted.messages, static_cast<std::int64_t>(messages.size()));
  ASSERT_EQ(counted.bytes, bytes);
  ASSERT_EQ(counted.bytes_local, bytes_local);
}

TEST(Count, AgreesWithItsDefinition) {
  testing::RandomSchedules schedules(3);
  for (int i = 0; i < 500 && !::testing::Test::HasFatalFailure(); ++i) expect_count(schedules.next());
  std::mt19937 random(4);
  for (int i = 0; i < 100 && !::testing::Test::HasFatalFailure(); ++i) expect_count(halo(testing::random_halo(random)));
}

HaloSpec cube(std::int64_t block, int grid, bool corners) {
  HaloSpec spec{.extents = {block * grid, block * grid, block * grid},
                .grid = {grid, grid, grid},
                .widths = {{1, 1}, {1, 1}, {1, 1}},
                .periodic = {true, true, true},
                .corners = corners};
  return spec;
}

TEST(Count, ClosedFormsOfAHalo) {
  for (const std::int64_t n : {2, 5, 16}) {
    const Count faces = count(halo(cube(n, 3, false)));
    EXPECT_EQ(faces.rounds, 1);
    EXPECT_EQ(faces.messages, 162);
    EXPECT_EQ(faces.bytes, 162 * n * n * 8);
    EXPECT_EQ(faces.pairs.size(), 27U * 6U);
    for (const RankCount& rank : faces.ranks) {
      EXPECT_EQ(rank.messages_sent, 6);
      EXPECT_EQ(rank.bytes_sent, 6 * n * n * 8);
      // A face across the slowest or the middle dimension is n rows, one across the fastest n * n single elements.
      EXPECT_EQ(rank.pieces_sent, 2 * (n + n + n * n));
      EXPECT_EQ(rank.pieces_received, rank.pieces_sent);
    }
    const Count shell = count(halo(cube(n, 3, true)));
    EXPECT_EQ(shell.messages, 27 * 26);
    EXPECT_EQ(shell.bytes, 27 * ((n + 2) * (n + 2) * (n + 2) - n * n * n) * 8);
    // On a grid of two a rank meets the same neighbour on either side: half as many messages, of twice the size.
    const Count pairs = count(halo(cube(n, 2, false)));
    EXPECT_EQ(pairs.messages, 8 * 3);
    EXPECT_EQ(pairs.ranks[7].bytes_received, 6 * n * n * 8);
  }
}

TEST(Count, SaysWhichTransferNamesWhatIsNotThere) {
  Schedule schedule{"", 2, {{"u", 8, ElementType::bytes, {4}}}, {Round{}}, {}};
  schedule.rounds[0].transfers = {{{0, 0, Slice::range(0, 1)}, {2, 0, Slice::range(0, 1)}}};
  EXPECT_EQ(testing::thrown<BadInput>([&] { (void)count(schedule); }),
            "count: expected ranks below 2 and arrays below 1, found rank 2 and array 0 in round 0, transfer 0 (rank "
            "0 array u -> rank 2 array u, 1 element)");
  schedule.rounds[0].transfers = {{{0, 1, Slice::range(0, 1)}, {1, 0, Slice::range(0, 1)}}};
  EXPECT_THROW((void)count(schedule), BadInput);
  schedule.arrays[0].element_bytes = two_to(60);
  schedule.rounds[0].transfers = {{{0, 0, Slice::range(0, 7)}, {1, 0, Slice::range(0, 7)}},
                                  {{0, 0, Slice::range(0, 7)}, {1, 0, Slice::range(0, 7)}}};
  EXPECT_THROW((void)count(schedule), BadInput) << "2^63 bytes and more";
}

TEST(Count, Json) {
  HaloSpec spec{.extents = {4}, .grid = {2}, .widths = {{0, 1}}, .periodic = {false}};
  EXPECT_EQ(count(halo(spec)).to_json(),
            R"({"rounds":1,"messages":1,"bytes":8,"bytes_local":0,"ranks":[)"
            R"({"messages_sent":0,"messages_received":1,"bytes_sent":0,"bytes_received":8,"bytes_local":0,)"
            R"("pieces_sent":0,"pieces_received":1},)"
            R"({"messages_sent":1,"messages_received":0,"bytes_sent":8,"bytes_received":0,"bytes_local":0,)"
            R"("pieces_sent":1,"pieces_received":0}],)"
            R"("pairs":[{"from":1,"to":0,"messages":1,"bytes":8,"pieces":1,"pieces_received":1}]})");
}

}  // namespace
}  // namespace onehop
