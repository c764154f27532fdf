// Behaviour of channels: one suite over the transports and over both kinds of ranks (processes, threads).
#include "onehop/channel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "onehop/error.h"
#include "support/ranks.h"

namespace onehop {
namespace {

using testing::fork_ranks;
using testing::on_ranks;
using testing::on_threads;
using Direction = ChannelSpec::Direction;

std::byte pattern(std::int64_t message, std::int64_t i) {
  return static_cast<std::byte>((message * 131 + i * 7 + (i >> 8) * 13) & 0xff);
}

std::vector<std::byte> make_message(std::int64_t number, std::int64_t bytes) {
  std::vector<std::byte> message(static_cast<std::size_t>(bytes));
  for (std::int64_t i = 0; i < bytes; ++i) message[static_cast<std::size_t>(i)] = pattern(number, i);
  return message;
}

ChannelSpec end(Direction direction, int peer, std::int64_t bytes, int tag = 0) {
  ChannelSpec spec;
  spec.direction = direction;
  spec.peer = peer;
  spec.bytes = bytes;
  spec.tag = tag;
  return spec;
}

// Everybody sends `count` messages to everybody else and to itself, and checks what arrives.
void all_to_all(const Group& group, std::int64_t bytes, int count, ChannelSpec shape = {}) {
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
  Channels channels = open_channels(group, specs);
  std::vector<std::byte> got(static_cast<std::size_t>(bytes));
  for (int k = 0; k < count; ++k) {
    // A message of several fragments does not fit into its slots before somebody receives: ranks take turns.
    for (int step = 0; step < group.size(); ++step) {
      const auto to = static_cast<std::size_t>((group.rank() + step) % group.size());
      const auto from = static_cast<std::size_t>((group.rank() - step + group.size()) % group.size());
      const auto message = make_message(k * 100 + group.rank(), bytes);
      const bool fits = channels.senders[to].in_place();
      if (fits || group.rank() < static_cast<int>(to)) channels.senders[to].put(message);
      channels.receivers[from].get(got);
      if (!fits && group.rank() >= static_cast<int>(to)) channels.senders[to].put(message);
      ASSERT_EQ(got, make_message(k * 100 + static_cast<int>(from), bytes)) << "message " << k << " from rank " << from;
    }
  }
}

class ChannelSizes : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(ChannelSizes, EveryRankGetsWhatEveryRankSent) {
  for (const int ranks : {1, 2, 3, 4}) {
    on_ranks(ranks, [&](const Group& group) { all_to_all(group, GetParam(), 20); });
  }
}

TEST_P(ChannelSizes, ThreadsAreRanksToo) {
  on_threads(2, [&](const Group& group) { all_to_all(group, GetParam(), 20); });
  on_threads(3, [&](const Group& group) { all_to_all(group, GetParam(), 5); });
}

INSTANTIATE_TEST_SUITE_P(Bytes, ChannelSizes,
                         ::testing::Values(0, 1, 7, 8, 9, 16, 55, 56, 57, 64, 100, 1000, 4096, 4097, 65536, 100001, 1 << 20));

TEST(Channel, EightRanksOnFewProcessors) {
  on_ranks(8, [](const Group& group) { all_to_all(group, 64, 50); });
}

TEST(Channel, FragmentsAndChunksOfEverySize) {
  for (const std::int64_t slot_bytes : {64, 1000, 4096}) {
    for (const std::int64_t chunk_bytes : {64, 100, 4096}) {
      for (const int slots : {1, 2, 3, 8}) {
        on_threads(2, [&](const Group& group) {
          ChannelSpec shape;
          shape.slot_bytes = slot_bytes;
          shape.chunk_bytes = chunk_bytes;
          shape.slots = slots;
          const int peer = 1 - group.rank();
          ChannelSpec spec = shape;
          spec.peer = peer;
          spec.bytes = 10'001;
          spec.direction = group.rank() == 0 ? Direction::send : Direction::receive;
          Channels channels = open_channels(group, std::span(&spec, 1));
          std::vector<std::byte> got(10'001);
          for (int k = 0; k < 5; ++k) {
            if (group.rank() == 0) {
              channels.senders[0].put(make_message(k, 10'001));
            } else {
              channels.receivers[0].get(got);
              ASSERT_EQ(got, make_message(k, 10'001));
            }
          }
        });
      }
    }
  }
}

TEST(Channel, MessagesInPlaceStayUntilReleased) {
  on_ranks(2, [](const Group& group) {
    ChannelSpec spec = end(group.rank() == 0 ? Direction::send : Direction::receive, 1 - group.rank(), 128);
    spec.slots = 2;
    Channels channels = open_channels(group, std::span(&spec, 1));
    if (group.rank() == 0) {
      for (int k = 0; k < 1000; ++k) {
        const auto slot = channels.senders[0].slot();
        std::memset(slot.data(), k & 0xff, slot.size());
        channels.senders[0].put();
      }
    } else {
      for (int k = 0; k < 1000; ++k) {
        const auto message = channels.receivers[0].wait();
        for (int look = 0; look < 3; ++look) {
          for (const std::byte b : message) ASSERT_EQ(b, static_cast<std::byte>(k & 0xff));
        }
        channels.receivers[0].release();
      }
    }
  });
}

TEST(Channel, TheSenderIsAtMostSlotsAhead) {
  on_threads(2, [](const Group& group) {
    ChannelSpec spec = end(group.rank() == 0 ? Direction::send : Direction::receive, 1 - group.rank(), 8);
    spec.slots = 3;
    Channels channels = open_channels(group, std::span(&spec, 1));
    if (group.rank() == 0) {
      int ahead = 0;
      while (channels.senders[0].ready()) {
        static_cast<void>(channels.senders[0].slot());
        channels.senders[0].put();
        ++ahead;
      }
      EXPECT_EQ(ahead, 3);
    }
    group.barrier();
    if (group.rank() == 1) {
      for (int k = 0; k < 3; ++k) {
        static_cast<void>(channels.receivers[0].wait());
        channels.receivers[0].release();
      }
      EXPECT_FALSE(channels.receivers[0].ready());
    }
    group.barrier();
  });
}

TEST(Channel, ASleeperIsWoken) {
  on_ranks(2, [](const Group& group) {
    std::vector<ChannelSpec> specs = {end(Direction::send, 1 - group.rank(), 8), end(Direction::receive, 1 - group.rank(), 8)};
    Channels channels = open_channels(group, specs);
    for (int k = 0; k < 30; ++k) {
      if (group.rank() == k % 2) {
        usleep(3000);  // long enough for the other to fall asleep
        channels.senders[0].put(make_message(k, 8));
      } else {
        std::vector<std::byte> got(8);
        channels.receivers[0].get(got);
        ASSERT_EQ(got, make_message(k, 8));
      }
    }
  });
}

TEST(Channel, TagsTellChannelsApart) {
  on_ranks(2, [](const Group& group) {
    std::vector<ChannelSpec> specs;
    for (int tag = 0; tag < 20; ++tag) {
      // The two ranks ask in opposite orders.
      const int use = group.rank() == 0 ? tag : 19 - tag;
      specs.push_back(end(group.rank() == 0 ? Direction::send : Direction::receive, 1 - group.rank(), 16 + use, use));
    }
    Channels channels = open_channels(group, specs);
    for (int i = 0; i < 20; ++i) {
      if (group.rank() == 0) {
        channels.senders[static_cast<std::size_t>(i)].put(make_message(i, 16 + i));
      } else {
        const int tag = 19 - i;
        std::vector<std::byte> got(static_cast<std::size_t>(16 + tag));
        channels.receivers[static_cast<std::size_t>(i)].get(got);
        EXPECT_EQ(got, make_message(tag, 16 + tag));
      }
    }
  });
}

// What every rank says when the ends do not fit.
void expect_mismatch(const std::function<std::vector<ChannelSpec>(int rank)>& wishes, const std::vector<std::string>& words) {
  const auto ended = fork_ranks(3, [&](const Group& group) {
    const auto specs = wishes(group.rank());
    try {
      static_cast<void>(open_channels(group, specs));
    } catch (const Mismatch& error) {
      for (const std::string& word : words) {
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << word << " is missing in: " << error.what();
      }
      return;
    }
    ADD_FAILURE() << "rank " << group.rank() << " saw no mismatch";
  });
  for (const auto& rank : ended) EXPECT_TRUE(rank.ok) << rank.message;
}

TEST(Channel, DifferentSizesAreAMismatchOnEveryRank) {
  expect_mismatch(
      [](int rank) -> std::vector<ChannelSpec> {
        if (rank == 0) return {end(Direction::send, 1, 64)};
        if (rank == 1) return {end(Direction::receive, 0, 128)};
        return {};
      },
      {"rank 0 sends 64 bytes", "rank 1 expects 128 bytes"});
}

TEST(Channel, AMissingPartnerIsAMismatchOnEveryRank) {
  expect_mismatch(
      [](int rank) -> std::vector<ChannelSpec> {
        if (rank == 2) return {end(Direction::send, 1, 64, 5)};
        if (rank == 1) return {end(Direction::receive, 2, 64, 6)};
        return {};
      },
      {"rank 2", "rank 1", "tag"});
}

TEST(Channel, OneEndTwiceIsBadInput) {
  EXPECT_THROW(static_cast<void>(open_channels(Group::alone(), std::vector{end(Direction::send, 0, 8), end(Direction::send, 0, 8),
                                                                           end(Direction::receive, 0, 8), end(Direction::receive, 0, 8)})),
               BadInput);
}

TEST(Channel, APeerThatDoesNotExistIsBadInput) {
  EXPECT_THROW(static_cast<void>(open_channels(Group::alone(), std::vector{end(Direction::send, 1, 8)})), BadInput);
}

TEST(Channel, WrongSizesAreRefusedBeforeAnythingMoves) {
  const Group group = Group::alone();
  Channels channels = open_channels(group, std::vector{end(Direction::send, 0, 8), end(Direction::receive, 0, 8)});
  EXPECT_THROW(channels.senders[0].put(make_message(0, 9)), BadInput);
  channels.senders[0].put(make_message(3, 8));
  std::vector<std::byte> wrong(7);
  EXPECT_THROW(channels.receivers[0].get(wrong), BadInput);
  std::vector<std::byte> right(8);
  channels.receivers[0].get(right);
  EXPECT_EQ(right, make_message(3, 8));
}

TEST(Channel, AMessageLongerThanASlotHasNoPlace) {
  const Group group = Group::alone();
  ChannelSpec spec = end(Direction::send, 0, 100);
  spec.slot_bytes = 64;
  Channels channels = open_channels(group, std::vector{spec, end(Direction::receive, 0, 100)});
  EXPECT_FALSE(channels.senders[0].in_place());
  EXPECT_THROW(static_cast<void>(channels.senders[0].slot()), BadInput);
}

TEST(Channel, MockNeverWaits) {
  const Group group = Group::alone();
  Channels channels = open_channels(group, std::vector{end(Direction::send, 0, 100), end(Direction::receive, 0, 100)},
                                    TransportKind::mock);
  std::vector<std::byte> got(100);
  for (int k = 0; k < 100; ++k) channels.senders[0].put(make_message(k, 100));
  for (int k = 0; k < 100; ++k) channels.receivers[0].get(got);
}

TEST(Channel, MpiNeedsAGroupFromMpi) {
  EXPECT_THROW(static_cast<void>(open_channels(Group::alone(), {}, TransportKind::mpi)), BadInput);
}

}  // namespace
}  // namespace onehop
