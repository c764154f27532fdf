#include "tests/support/transport_suite.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "onehop/verify.h"
#include "tests/support/naive_execute.h"

namespace onehop::testing {
namespace {

using Direction = ChannelSpec::Direction;

// Channels from everybody to everybody, the own rank included; `shape` says how they are cut.
Channels open_all(const Group& group, const Carrier& carrier, std::int64_t bytes, const ChannelSpec& shape) {
  std::vector<ChannelSpec> specs;
  for (int peer = 0; peer < group.size(); ++peer) {
    for (const Direction direction : {Direction::send, Direction::receive}) {
      ChannelSpec spec = shape;
      spec.direction = direction;
      spec.peer = peer;
      spec.bytes = bytes;
      specs.push_back(spec);
    }
  }
  return open_channels(group, specs, carrier.kind);
}

// Everybody sends `count` messages to everybody, in turns: a message longer than its slots needs a receiver meanwhile.
void all_to_all(const Group& group, const Carrier& carrier, std::int64_t bytes, int count,
                const ChannelSpec& shape = {}) {
  Channels channels = open_all(group, carrier, bytes, shape);
  std::vector<std::byte> got(static_cast<std::size_t>(bytes));
  for (int k = 0; k < count; ++k) {
    for (int step = 0; step < group.size(); ++step) {
      const auto to = static_cast<std::size_t>((group.rank() + step) % group.size());
      const auto from = static_cast<std::size_t>((group.rank() - step + group.size()) % group.size());
      if (step == 0 && !channels.senders[to].in_place()) continue;  // nobody else could empty the slots
      const auto message = make_message(k * 100 + group.rank(), bytes);
      const bool first = channels.senders[to].in_place() || group.rank() < static_cast<int>(to);
      if (first) channels.senders[to].put(message);
      channels.receivers[from].get(got);
      if (!first) channels.senders[to].put(message);
      if (!carrier.arrives) continue;
      ASSERT_EQ(got, make_message(k * 100 + static_cast<int>(from), bytes)) << "message " << k << " from rank " << from;
    }
  }
}

void carries_every_size(const Group& group, const Carrier& carrier) {
  for (const std::int64_t bytes : {0, 1, 7, 8, 9, 16, 55, 56, 57, 64, 100, 1000, 4096, 4097, 65536, 100001}) {
    SCOPED_TRACE(bytes);
    all_to_all(group, carrier, bytes, 12);
  }
  // Around one part and two of a transport that cuts fragments (src/mpi/mpi_end.h).
  for (const std::int64_t bytes : {64511, 64512, 64513, 129023, 129024, 129025, 1 << 20}) {
    SCOPED_TRACE(bytes);
    all_to_all(group, carrier, bytes, 4);
  }
  // The last fragment has fewer parts than the slot can hold, and parts of another length.
  ChannelSpec shape{.slot_bytes = 200'000, .chunk_bytes = 10'000};
  for (const std::int64_t bytes : {200'001, 264'512, 330'000}) {
    SCOPED_TRACE(bytes);
    all_to_all(group, carrier, bytes, 4, shape);
  }
}

void cuts_messages_as_told(const Group& group, const Carrier& carrier) {
  for (const std::int64_t slot_bytes : {64, 1000, 4096}) {
    for (const std::int64_t chunk_bytes : {64, 100, 4096}) {
      for (const int slots : {1, 2, 3, 8}) {
        ChannelSpec shape{.slots = slots, .slot_bytes = slot_bytes, .chunk_bytes = chunk_bytes};
        all_to_all(group, carrier, 1'501, 2, shape);
      }
    }
  }
}

void keeps_messages_in_place_until_released(const Group& group, const Carrier& carrier) {
  ChannelSpec shape;
  shape.slots = 2;
  Channels channels = open_all(group, carrier, 128, shape);
  const auto to = static_cast<std::size_t>((group.rank() + 1) % group.size());
  const auto from = static_cast<std::size_t>((group.rank() + group.size() - 1) % group.size());
  for (int k = 0; k < 300; ++k) {
    const auto slot = channels.senders[to].slot();
    std::memset(slot.data(), k & 0xff, slot.size());
    channels.senders[to].put();
    const auto message = channels.receivers[from].wait();
    for (int reads = 0; reads < 3 && carrier.arrives; ++reads) {
      for (const std::byte b : message) ASSERT_EQ(b, static_cast<std::byte>(k & 0xff)) << "message " << k;
    }
    channels.receivers[from].release();
  }
}

void tells_tags_apart(const Group& group, const Carrier& carrier) {
  constexpr int tags = 20;
  const int to = (group.rank() + 1) % group.size();
  const int from = (group.rank() + group.size() - 1) % group.size();
  std::vector<ChannelSpec> specs;
  for (int tag = 0; tag < tags; ++tag) specs.push_back(end_of_channel(Direction::send, to, 16 + tag, tag));
  // The receiving ends are asked for the other way round.
  for (int tag = tags - 1; tag >= 0; --tag) specs.push_back(end_of_channel(Direction::receive, from, 16 + tag, tag));
  Channels channels = open_channels(group, specs, carrier.kind);
  for (int tag = 0; tag < tags; ++tag) channels.senders[static_cast<std::size_t>(tag)].put(make_message(tag, 16 + tag));
  for (int i = 0; i < tags; ++i) {
    const int tag = tags - 1 - i;
    std::vector<std::byte> got(static_cast<std::size_t>(16 + tag));
    channels.receivers[static_cast<std::size_t>(i)].get(got);
    if (carrier.arrives) {
      EXPECT_EQ(got, make_message(tag, 16 + tag));
    }
  }
}

// The receiver has long fallen asleep when the message comes, and the sender when its slot becomes free.
void wakes_sleepers(const Group& group, const Carrier& carrier) {
  ChannelSpec shape;
  shape.slots = 1;
  Channels channels = open_all(group, carrier, 8, shape);
  const auto to = static_cast<std::size_t>((group.rank() + 1) % group.size());
  const auto from = static_cast<std::size_t>((group.rank() + group.size() - 1) % group.size());
  std::vector<std::byte> got(8);
  for (int k = 0; k < 10; ++k) {
    if (group.rank() == 0) usleep(3000);
    channels.senders[to].put(make_message(k, 8));
    channels.receivers[from].get(got);
    if (carrier.arrives) {
      ASSERT_EQ(got, make_message(k, 8));
    }
  }
}

// What every rank says when ends do not fit.
void expect_mismatch(const Group& group, const Carrier& carrier, const std::vector<ChannelSpec>& specs,
                     const std::vector<std::string>& words) {
  try {
    static_cast<void>(open_channels(group, specs, carrier.kind));
  } catch (const Mismatch& error) {
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << word << " is missing in: " << error.what();
    }
    return;
  }
  ADD_FAILURE() << "rank " << group.rank() << " saw no mismatch";
}

void names_both_ranks_of_a_mismatch(const Group& group, const Carrier& carrier) {
  const int last = group.size() - 1;
  const std::string name = "rank " + std::to_string(last);
  std::vector<ChannelSpec> specs;
  if (group.rank() == 0) specs.push_back(end_of_channel(Direction::send, last, 64));
  if (group.rank() == last) specs.push_back(end_of_channel(Direction::receive, 0, 128));
  expect_mismatch(group, carrier, specs, {"rank 0 sends 64 bytes", name + " expects 128 bytes"});
  specs.clear();
  if (group.rank() == last) specs.push_back(end_of_channel(Direction::send, 0, 64, 5));
  if (group.rank() == 0) specs.push_back(end_of_channel(Direction::receive, last, 64, 6));
  expect_mismatch(group, carrier, specs, {"rank 0", name, "tag 5"});
}

void refuses_messages_of_another_size(const Group& group, const Carrier& carrier) {
  Channels channels = open_channels(group,
                                    std::vector{end_of_channel(Direction::send, group.rank(), 8),
                                                end_of_channel(Direction::receive, group.rank(), 8)},
                                    carrier.kind);
  EXPECT_THROW(channels.senders[0].put(make_message(0, 9)), BadInput);
  channels.senders[0].put(make_message(3, 8));
  std::vector<std::byte> wrong(7);
  EXPECT_THROW(channels.receivers[0].get(wrong), BadInput);
  std::vector<std::byte> right(8);
  channels.receivers[0].get(right);
  if (carrier.arrives) {
    EXPECT_EQ(right, make_message(3, 8));
  }
}

// A plan does what the naive executor does, several times over, and its counters say what `count` says.
void expect_plan(const Group& group, const Carrier& carrier, const Schedule& schedule, Memory expected) {
  const auto own = static_cast<std::size_t>(group.rank());
  for (const std::int64_t slot_bytes : {0, 200}) {
    auto mine = expected[own];
    const std::vector<std::span<std::byte>> spans(mine.begin(), mine.end());
    PlanOptions options{.transport = carrier.kind, .slot_bytes = slot_bytes};
    Plan plan(group, schedule, spans, options);
    for (int run = 0; run < 3; ++run) {
      naive_execute(schedule, expected);
      plan.run();
      if (carrier.arrives) {
        ASSERT_EQ(mine, expected[own]) << "run " << run << " with slots of " << slot_bytes;
      }
    }
    const RankCount counted = count(schedule).ranks[own];
    EXPECT_EQ(plan.counters().messages_sent, 3 * counted.messages_sent);
    EXPECT_EQ(plan.counters().bytes_sent, 3 * counted.bytes_sent);
    EXPECT_EQ(plan.counters().bytes_received, 3 * counted.bytes_received);
    EXPECT_EQ(plan.counters().bytes_local, 3 * counted.bytes_local);
  }
}

void runs_plans(const Group& group, const Carrier& carrier) {
  HaloSpec spec{.extents = {2 * group.size() + 1, 7, 5},
                .grid = {group.size(), 1, 1},
                .widths = {{1, 2}, {1, 1}, {2, 0}},
                .periodic = {true, true, false},
                .corners = true,
                .element_bytes = {8, 3}};
  const Schedule schedule = halo(spec);
  expect_plan(group, carrier, schedule, random_memory(schedule, 5));
}

// Every rank receives from all, itself included, in an order of its own, twice from each rank.
void combines_in_the_order_of_the_round(const Group& group, const Carrier& carrier) {
  Schedule schedule{"sums", group.size(), {{"x", 4, ElementType::float32, {400}}}, {Round{}}, {}};
  for (int i = 0; i < 2 * group.size(); ++i) {
    for (int to = 0; to < group.size(); ++to) {
      const int from = (to % 2 == 0 ? i + to : 2 * group.size() - i) % group.size();
      const Codec codec = i % 3 == 0 ? Codec::q8 : Codec::raw;
      schedule.rounds[0].transfers.push_back(
          {{from, 0, Slice::range(10 * i, 150)}, {to, 0, Slice::range(250 - 3 * i, 150)}, Combine::add, codec});
    }
  }
  verify_or_throw(schedule);
  expect_plan(group, carrier, schedule, random_numbers(schedule, 6));
}

}  // namespace

std::vector<std::byte> make_message(std::int64_t number, std::int64_t bytes) {
  std::vector<std::byte> message(static_cast<std::size_t>(bytes));
  for (std::int64_t i = 0; i < bytes; ++i) {
    message[static_cast<std::size_t>(i)] = static_cast<std::byte>((number * 131 + i * 7 + (i >> 8) * 13) & 0xff);
  }
  return message;
}

ChannelSpec end_of_channel(ChannelSpec::Direction direction, int peer, std::int64_t bytes, int tag) {
  ChannelSpec spec{.direction = direction, .peer = peer, .bytes = bytes, .tag = tag};
  return spec;
}

const std::vector<Behaviour>& transport_behaviours() {
  static const std::vector<Behaviour> all = {
      {"CarriesEverySize", carries_every_size},
      {"CutsMessagesAsTold", cuts_messages_as_told},
      {"KeepsMessagesInPlaceUntilReleased", keeps_messages_in_place_until_released},
      {"TellsTagsApart", tells_tags_apart},
      {"WakesSleepers", wakes_sleepers},
      {"NamesBothRanksOfAMismatch", names_both_ranks_of_a_mismatch},
      {"RefusesMessagesOfAnotherSize", refuses_messages_of_another_size},
      {"RunsPlans", runs_plans},
      {"CombinesInTheOrderOfTheRound", combines_in_the_order_of_the_round},
  };
  return all;
}

}  // namespace onehop::testing
