// What is special about channels in shared memory; what all transports have in common is in tests/support/transport_suite.cc.
#include "onehop/channel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "onehop/error.h"
#include "support/ranks.h"
#include "support/transport_suite.h"

namespace onehop {
namespace {

using testing::end_of_channel;
using testing::make_message;
using testing::on_ranks;
using testing::on_threads;
using Direction = ChannelSpec::Direction;

TEST(Channel, TheSenderIsAtMostSlotsAhead) {
  on_threads(2, [](const Group& group) {
    ChannelSpec spec = end_of_channel(group.rank() == 0 ? Direction::send : Direction::receive, 1 - group.rank(), 8);
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

TEST(Channel, EightRanksOnFewProcessors) {
  on_ranks(8, [](const Group& group) {
    const int right = (group.rank() + 1) % 8;
    const int left = (group.rank() + 7) % 8;
    Channels ring = open_channels(
        group, std::vector{end_of_channel(Direction::send, right, 64), end_of_channel(Direction::receive, left, 64)});
    std::vector<std::byte> got(64);
    for (int step = 0; step < 500; ++step) {
      ring.senders[0].put(make_message(step * 8 + group.rank(), 64));
      ring.receivers[0].get(got);
      ASSERT_EQ(got, make_message(step * 8 + left, 64)) << "step " << step;
    }
  });
}

TEST(Channel, OneEndTwiceIsBadInput) {
  const std::vector<ChannelSpec> specs = {end_of_channel(Direction::send, 0, 8), end_of_channel(Direction::send, 0, 8),
                                          end_of_channel(Direction::receive, 0, 8),
                                          end_of_channel(Direction::receive, 0, 8)};
  EXPECT_THROW(static_cast<void>(open_channels(Group::alone(), specs)), BadInput);
}

TEST(Channel, APeerThatDoesNotExistIsBadInput) {
  EXPECT_THROW(static_cast<void>(open_channels(Group::alone(), std::vector{end_of_channel(Direction::send, 1, 8)})),
               BadInput);
}

TEST(Channel, AMessageLongerThanASlotHasNoPlace) {
  const Group group = Group::alone();
  ChannelSpec spec = end_of_channel(Direction::send, 0, 100);
  spec.slot_bytes = 64;
  Channels channels = open_channels(group, std::vector{spec, end_of_channel(Direction::receive, 0, 100)});
  EXPECT_FALSE(channels.senders[0].in_place());
  EXPECT_THROW(static_cast<void>(channels.senders[0].slot()), BadInput);
}

TEST(Channel, MpiNeedsAGroupFromMpi) {
  EXPECT_THROW(static_cast<void>(open_channels(Group::alone(), {}, TransportKind::mpi)), BadInput);
}

// More than 2^31 bytes in one message, through slots that are a small part of it.
TEST(Channel, MessagesBeyondTwoGibibytes) {
  constexpr std::int64_t bytes = (std::int64_t{1} << 31) + 12'345;
  if (sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) < 4 * bytes) GTEST_SKIP() << "this machine has too little memory";
  on_ranks(2, [&](const Group& group) {
    ChannelSpec spec =
        end_of_channel(group.rank() == 0 ? Direction::send : Direction::receive, 1 - group.rank(), bytes);
    spec.slot_bytes = 1 << 20;
    Channels channels = open_channels(group, std::span(&spec, 1));
    std::vector<std::byte> message(static_cast<std::size_t>(bytes));
    const auto value = [](std::int64_t at) { return static_cast<std::byte>((at >> 16) * 37 + at); };
    if (group.rank() == 0) {
      for (std::int64_t at = 0; at < bytes; at += 4093) message[static_cast<std::size_t>(at)] = value(at);
      channels.senders[0].put(message);
    } else {
      channels.receivers[0].get(message);
      for (std::int64_t at = 0; at < bytes; at += 4093)
        ASSERT_EQ(message[static_cast<std::size_t>(at)], value(at)) << at;
    }
  });
}

}  // namespace
}  // namespace onehop
