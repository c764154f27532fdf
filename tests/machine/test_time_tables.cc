// Tables of measured times in machines, and what simulations make of them, against times computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "onehop/error.h"
#include "onehop/machine/simulate.h"
#include "tests/machine/machines.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using testing::guess;
using testing::level;
using testing::machine;

constexpr double overhead = 2e-7;
constexpr double latency = 1e-6;
constexpr double alone = 2e-6;     // a message of 1000 bytes
constexpr double exchange = 3e-6;  // two of them in opposite directions

TimeTable table(std::vector<TimeTable::Point> points) { return {std::move(points), Basis::measured, "this test"}; }

Machine measured(std::int64_t processors = 4) {
  Machine found = machine({level("host", Routing::all_to_all, {processors})});
  found.levels[0].bandwidth = guess(1e12);
  found.levels[0].one_way = table({{1000, alone}, {100000, 2e-5}});
  found.levels[0].both_ways = table({{1000, exchange}, {100000, 3e-5}});
  found.copies = table({{100, 1e-6}, {10000, 1e-4}});
  found.packed_piece = guess(1e-8);
  found.copied_piece = guess(2e-8);
  return found;
}

Traffic round_of(int ranks, std::vector<Message> messages) {
  Traffic traffic{"round", ranks, std::vector<TrafficRound>(1), 0};
  traffic.rounds[0].messages = std::move(messages);
  return traffic;
}

TEST(TimeTables, TimesBetweenPointsLieOnALineOfLogarithms) {
  const TimeTable steep = table({{100, 1e-6}, {10000, 1e-2}});
  EXPECT_NEAR(steep.seconds(1000), 1e-4, 1e-16);
  EXPECT_EQ(steep.seconds(10), 1e-6);
  EXPECT_EQ(steep.seconds(100), 1e-6);
  EXPECT_NEAR(steep.seconds(10000), 1e-2, 1e-15);
  EXPECT_NEAR(steep.seconds(30000), 3e-2, 1e-14);
}

TEST(TimeTables, MessagesTakeTheTimesThatWereMeasured) {
  EXPECT_NEAR(simulate(round_of(2, {{0, 1, 1000}}), measured()).seconds, alone, 1e-15);
  EXPECT_NEAR(simulate(round_of(2, {{0, 1, 10000}}), measured()).seconds, 2e-6 * std::sqrt(10), 1e-14);
  EXPECT_NEAR(simulate(round_of(2, {{0, 1, 1000}, {1, 0, 1000}}), measured()).seconds, exchange, 1e-15);
  // Pairs of processors do not disturb each other.
  const Traffic two = round_of(4, {{0, 1, 1000}, {1, 0, 1000}, {2, 3, 1000}, {3, 2, 1000}});
  EXPECT_NEAR(simulate(two, measured()).seconds, exchange, 1e-15);
}

TEST(TimeTables, AProcessorWorksOnEveryMessage) {
  const Simulation run = simulate(round_of(3, {{0, 2, 1000}, {1, 2, 1000}}), measured());
  EXPECT_NEAR(run.seconds, exchange, 1e-15);
  EXPECT_NEAR(run.timelines[0][0].end, exchange / 2, 1e-15);
  EXPECT_NEAR(simulate(round_of(4, {{0, 3, 1000}, {1, 3, 1000}, {2, 3, 1000}}), measured()).seconds, 1.5 * exchange,
              1e-15);
}

TEST(TimeTables, PiecesAreGatheredBeforeAndScatteredAfterTheFlow) {
  Traffic traffic = round_of(2, {{0, 1, 1000}});
  traffic.rounds[0].messages[0].pieces_sent = 100;
  traffic.rounds[0].messages[0].pieces_received = 50;
  EXPECT_NEAR(simulate(traffic, measured()).seconds, alone + 150 * 1e-8, 1e-14);
  Machine plain = measured();
  plain.packed_piece = {};
  EXPECT_NEAR(simulate(traffic, plain).seconds, alone, 1e-14);
}

TEST(TimeTables, PiecesTakeTheTimeOfTheirLength) {
  Traffic traffic = round_of(2, {{0, 1, 1000}});
  traffic.rounds[0].messages[0].pieces_sent = 100;    // of 10 bytes
  traffic.rounds[0].messages[0].pieces_received = 2;  // of 500 bytes, longer than any that was measured
  Machine found = measured();
  found.packed_pieces = table({{10, 3e-8}, {100, 5e-8}});
  EXPECT_NEAR(simulate(traffic, found).seconds, alone + 100 * 3e-8 + 2 * 5e-8, 1e-14);
  EXPECT_EQ(Machine::from_json(found.to_json()), found);
  found.packed_pieces.points[1].seconds = 1e-9;
  EXPECT_THROW(found.check(), BadInput);
}

TEST(TimeTables, AProcessorThatMovesBytesCannotCopyMeanwhile) {
  Traffic traffic = round_of(2, {{0, 1, 1000}, {1, 0, 1000}});
  traffic.rounds[0].local_bytes = {1000};
  traffic.rounds[0].local_pieces = {30};
  const double copies = 1e-5 + 30 * 2e-8;
  EXPECT_NEAR(simulate(traffic, measured()).seconds, exchange + copies, 1e-14);
  // A machine without times of exchanges copies while the messages flow.
  Machine plain = measured();
  plain.levels[0].both_ways = {};
  EXPECT_NEAR(simulate(traffic, plain).seconds, overhead + copies + overhead, 1e-14);
}

TEST(TimeTables, WhatMovesInPlaceIsCopiedInHalves) {
  Traffic traffic = round_of(2, {});
  traffic.rounds[0].local_bytes = {2000};
  EXPECT_NEAR(simulate(traffic, measured()).seconds, 2e-5, 1e-14);
  traffic.rounds[0].local_in_place = true;
  Machine cached = measured();
  cached.copies = table({{1000, 1e-6}, {2000, 1e-5}});
  EXPECT_NEAR(simulate(traffic, cached).seconds, 2e-6, 1e-14);
}

TEST(TimeTables, WhatMovesInPlaceTakesTheTimeOfUpdates) {
  Traffic traffic = round_of(2, {});
  traffic.rounds[0].local_bytes = {2000};
  Machine known = measured();
  known.updates = table({{1000, 1e-6}, {4000, 4e-6}});
  EXPECT_NEAR(simulate(traffic, known).seconds, 2e-5, 1e-14);  // a copy
  traffic.rounds[0].local_in_place = true;
  EXPECT_NEAR(simulate(traffic, known).seconds, 2e-6, 1e-14);
  // Also where copies are not known.
  known.copies = {};
  EXPECT_NEAR(simulate(traffic, known).seconds, 2e-6, 1e-14);
}

TEST(TimeTables, WhatMovesInSharedArraysTakesTheTimeOfSharedUpdates) {
  Machine known = measured();
  known.updates = table({{1000, 1e-6}, {4000, 4e-6}});
  known.shared_updates = table({{1000, 2e-6}, {4000, 8e-6}});
  EXPECT_EQ(Machine::from_json(known.to_json()), known);
  // The highest of three local bits changes places with that of the rank, or with the one below.
  const Traffic between = onehop::shared_permutation_traffic({4, 3, {0, 1, 3, 2}, 500});
  const Traffic inside = onehop::shared_permutation_traffic({4, 3, {0, 2, 1, 3}, 500});
  EXPECT_NEAR(simulate(between, known).seconds, 4e-6, 1e-14);  // 2000 bytes of each rank
  EXPECT_NEAR(simulate(inside, known).seconds, 2e-6, 1e-14);
  known.shared_updates = {};
  EXPECT_NEAR(simulate(between, known).seconds, 2e-6, 1e-14);
}

TEST(TimeTables, MessagesOfCollectivesTakeTheTimeOfTheTable) {
  Machine known = measured();
  known.levels[0].in_collective = table({{40, 2e-7}, {400, 4e-7}});
  EXPECT_EQ(Machine::from_json(known.to_json()), known);
  const auto seconds = [](std::int64_t elements, const Machine& machine) {
    return simulate(onehop::allreduce_traffic({2, elements, onehop::ElementType::float32, onehop::Combine::add,
                                               onehop::ReduceAlgorithm::one_shot}),
                    machine)
        .seconds;
  };
  EXPECT_NEAR(seconds(10, known), 2e-7, 1e-14);
  EXPECT_NEAR(seconds(100, known), 4e-7, 1e-14);
  EXPECT_NEAR(seconds(1000, known), 4e-6, 1e-14);  // at the rate of the last point
  // Messages of plans are as before.
  const Traffic plan = round_of(2, {{0, 1, 40}, {1, 0, 40}});
  EXPECT_EQ(simulate(plan, known).seconds, simulate(plan, measured()).seconds);
  known.levels[0].in_collective.points[1].seconds = 1e-9;
  EXPECT_THROW(known.check(), BadInput);
}

TEST(TimeTables, SymmetryFindsTheSameTimes) {
  Traffic traffic{"bits", 16, std::vector<TrafficRound>(1), 0};
  TrafficRound& round = traffic.rounds[0];
  round.kind = TrafficRound::Kind::bits;
  round.bits = {0, 2};
  round.bytes = 3000;
  round.local_bytes = {500};
  const Simulation one = simulate(traffic, measured(16));
  const Simulation all = simulate(traffic.listed(), measured(16));
  EXPECT_TRUE(one.by_symmetry);
  EXPECT_FALSE(all.by_symmetry);
  EXPECT_NEAR(one.seconds, all.seconds, 1e-12);
}

TEST(TimeTables, HalosKnowTheirPieces) {
  // Two ranks side by side in the last of two periodic dimensions: each sends the first and the last of its 5 columns
  // of 6 numbers, and copies its first and last row of 5 numbers to the other end of its columns.
  const HaloSpec spec{{6, 10}, {1, 2}, {{1, 1}, {1, 1}}, {true, true}, false};
  const Traffic traffic = traffic_of(halo(spec));
  ASSERT_EQ(traffic.rounds.size(), 1U);
  for (const Message& message : traffic.rounds[0].messages) {
    EXPECT_EQ(message.pieces_sent, 12);
    EXPECT_EQ(message.pieces_received, 12);
  }
  EXPECT_EQ(traffic.rounds[0].local_pieces, (std::vector<std::int64_t>{2, 2}));
  const Traffic rows = traffic_of(halo({{12, 5}, {2, 1}, {{1, 1}, {0, 0}}, {false, false}, false}));
  for (const Message& message : rows.rounds[0].messages) EXPECT_EQ(message.pieces_sent, 0);  // one piece
}

TEST(TimeTables, SharedPermutationsTouchTheLinesInWhichElementsMove) {
  // 16 numbers of 16 bytes on each of two ranks; a line has four of them.
  const auto bytes = [](int local_bit) {
    PermuteBitsSpec spec{5, 4, {0, 1, 2, 3, 4}, 16};
    std::swap(spec.permutation[static_cast<std::size_t>(local_bit)], spec.permutation[4]);
    const Traffic traffic = shared_permutation_traffic(spec);
    EXPECT_TRUE(traffic.rounds.at(0).messages.empty());
    EXPECT_TRUE(traffic.rounds.at(0).local_in_place);
    return traffic.rounds.at(0).local_bytes;
  };
  using Bytes = std::vector<std::int64_t>;
  EXPECT_EQ(bytes(0), (Bytes{256, 256}));
  EXPECT_EQ(bytes(1), (Bytes{256, 256}));
  EXPECT_EQ(bytes(2), (Bytes{128, 128}));
  EXPECT_EQ(bytes(3), (Bytes{128, 128}));
}

TEST(TimeTables, PiecesOfACutMessageAreSharedOut) {
  Traffic traffic = round_of(2, {{0, 1, 1000}});
  traffic.rounds[0].messages[0].pieces_sent = 100;
  const std::vector<std::vector<RailAssignment>> cut = {{{0, 1, 0, 0, 250}, {0, 1, 1, 250, 750}}};
  const Traffic pieces = on_rails(traffic, cut);
  EXPECT_EQ(pieces.rounds[0].messages[0].pieces_sent, 25);
  EXPECT_EQ(pieces.rounds[0].messages[1].pieces_sent, 75);
}

TEST(TimeTables, JsonRestoresThemAndBadOnesAreRefused) {
  EXPECT_EQ(Machine::from_json(measured().to_json()), measured());
  const auto complaint = [](const std::function<void(Machine&)>& spoil) {
    Machine wrong = measured();
    spoil(wrong);
    return testing::message_of<BadInput>([&] { wrong.check(); });
  };
  EXPECT_EQ(complaint([](Machine&) {}), "");
  EXPECT_EQ(complaint([](Machine& m) { m.levels[0].one_way = {}; }),
            "levels[0].one_way: expected the times of messages that flow alone, beside both_ways, found none");
  EXPECT_EQ(complaint([](Machine& m) { m.levels[0].one_way.points.pop_back(); }),
            "levels[0].one_way: expected 2 to 64 points, found 1");
  EXPECT_EQ(
      complaint([](Machine& m) { m.copies.points[1].bytes = 100; }),
      "copies: expected finite bytes above 0 that ascend, and seconds above 0 that do not descend, found 0.0001 s "
      "for 100 bytes after 1e-06 s for 100");
  EXPECT_NE(complaint([](Machine& m) { m.copies.points[1].seconds = 1e-7; }), "");
  EXPECT_EQ(complaint([](Machine& m) { m.updates = table({{1000, 1e-6}}); }),
            "updates: expected 2 to 64 points, found 1");
  EXPECT_EQ(complaint([](Machine& m) { m.copies.source.clear(); }),
            "copies: expected the source of the numbers, found none");
  EXPECT_EQ(complaint([](Machine& m) { m.used_line = guess(-1); }),
            "used_line: expected a finite number of at least 0, found -1");
}

}  // namespace
}  // namespace onehop
