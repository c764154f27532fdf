// Properties of channels in shared memory. Those that all transports share are tested in
// tests/support/transport_suite.cc.
#include "onehop/channel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "onehop/error.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"
#include "tests/support/transport_suite.h"

namespace onehop {
namespace {

using testing::end_of_channel;
using testing::make_message;
using testing::on_ranks;
using testing::on_threads;
using testing::thrown;
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

// -- interrupted messages ------------------------------------------------------------------------------------------

constexpr std::int64_t piece = 1024;  // one slot of a message

// One channel from rank 0 to rank 1: two slots, and messages of `pieces` slots.
Channels one_way(const Group& group, std::int64_t pieces) {
  ChannelSpec spec =
      end_of_channel(group.rank() == 0 ? Direction::send : Direction::receive, 1 - group.rank(), pieces * piece);
  spec.slots = 2;
  spec.slot_bytes = piece;
  spec.chunk_bytes = piece / 4;
  return open_channels(group, std::span(&spec, 1));
}

TEST(Channel, ATimeLimitInsideAMessageSpendsTheEnd) {
  on_threads(2, [](const Group& group) {
    Channels channels = one_way(group, 5);
    std::vector<std::byte> message = make_message(1, 5 * piece);
    group.set_timeout(0.1);
    if (group.rank() == 0) {
      Sender& sender = channels.senders[0];
      // There is room for two pieces.
      EXPECT_SAYS(thrown<Timeout>([&] { sender.put(message); }), "channel 0 -> 1");
      const auto write = [&] { sender.write([](std::span<std::byte>, std::int64_t) { ADD_FAILURE() << "written"; }); };
      for (const auto& act : std::vector<std::function<void()>>{[&] { sender.put(message); }, write}) {
        const std::string text = thrown<Error>(act);
        EXPECT_SAYS(text, "channel 0 -> 1 failed inside a message (rank 0 waited for rank 1");
        EXPECT_SAYS(text, "open new channels");
      }
      EXPECT_FALSE(sender.ready());
    }
    group.barrier();
    if (group.rank() == 1) {
      Receiver& receiver = channels.receivers[0];
      EXPECT_SAYS(thrown<Timeout>([&] { receiver.get(message); }), "channel 0 -> 1");
      const auto read = [&] {
        receiver.read([](std::span<const std::byte>, std::int64_t) { ADD_FAILURE() << "read"; });
      };
      for (const auto& act : std::vector<std::function<void()>>{[&] { receiver.get(message); }, read}) {
        EXPECT_SAYS(thrown<Error>(act), "channel 0 -> 1 failed inside a message (rank 1 waited for rank 0");
      }
      EXPECT_FALSE(receiver.ready());
      receiver.release();  // without a message; must not tell the sender that its slots are free
    }
    group.barrier();
    if (group.rank() == 0) {
      EXPECT_FALSE(channels.senders[0].ready());
    }
    // The interrupted message does not affect new channels.
    group.set_timeout(0);
    Channels again = one_way(group, 5);
    if (group.rank() == 0) {
      again.senders[0].put(message);
    } else {
      again.receivers[0].get(message);
      EXPECT_EQ(message, make_message(1, 5 * piece));
    }
  });
}

TEST(Channel, ATimeLimitBeforeAMessageSpendsNothing) {
  on_threads(2, [](const Group& group) {
    for (const std::int64_t pieces : {1, 2}) {
      Channels channels = one_way(group, pieces);
      const std::int64_t bytes = pieces * piece;
      std::vector<std::byte> got(static_cast<std::size_t>(bytes));
      const int fit = pieces == 1 ? 2 : 1;
      group.set_timeout(0.05);
      if (group.rank() == 0) {
        for (int k = 0; k < fit; ++k) channels.senders[0].put(make_message(k, bytes));
        thrown<Timeout>([&] { channels.senders[0].put(make_message(fit, bytes)); });
      } else {
        group.barrier();
        for (int k = 0; k < fit; ++k) {
          channels.receivers[0].get(got);
          EXPECT_EQ(got, make_message(k, bytes));
        }
        thrown<Timeout>([&] { channels.receivers[0].get(got); });
      }
      if (group.rank() == 0) group.barrier();
      group.barrier();
      group.set_timeout(0);
      if (group.rank() == 0) {
        channels.senders[0].put(make_message(fit, bytes));
      } else {
        channels.receivers[0].get(got);
        EXPECT_EQ(got, make_message(fit, bytes));
      }
    }
  });
}

TEST(Channel, WhatTheUsersCodeThrowsInsideAMessageSpendsTheEnd) {
  on_threads(2, [](const Group& group) {
    Channels channels = one_way(group, 2);
    // Throws in the part that begins at `where`.
    const auto fail_at = [](std::int64_t where) {
      return [where](auto part, std::int64_t at) {
        if (at == where) throw std::runtime_error("the user's own");
        if constexpr (!std::is_const_v<std::remove_reference_t<decltype(part[0])>>) {
          for (std::size_t i = 0; i < part.size(); ++i)
            part[i] = static_cast<std::byte>(at + static_cast<std::int64_t>(i));
        }
      };
    };
    if (group.rank() == 0) {
      Sender& sender = channels.senders[0];
      // Nothing is published before the first part is complete.
      thrown<std::runtime_error>([&] { sender.write(fail_at(0)); });
      sender.write(fail_at(-1));
      group.barrier();
      thrown<std::runtime_error>([&] { sender.write(fail_at(piece / 4)); });
      EXPECT_SAYS(thrown<Error>([&] { sender.write(fail_at(-1)); }), "inside a message (the user's own)");
    } else {
      Receiver& receiver = channels.receivers[0];
      // No slot is returned before the first slot is read.
      thrown<std::runtime_error>([&] { receiver.read(fail_at(piece / 2)); });
      std::int64_t seen = 0;
      receiver.read([&](std::span<const std::byte> part, std::int64_t at) {
        EXPECT_EQ(at, seen);
        seen += static_cast<std::int64_t>(part.size());
        EXPECT_EQ(part[3], static_cast<std::byte>(at + 3));
      });
      EXPECT_EQ(seen, 2 * piece);
      group.barrier();
    }
    group.barrier();
    // The other end: the message is interrupted in its second slot.
    Channels more = one_way(group, 2);
    if (group.rank() == 0) {
      more.senders[0].write(fail_at(-1));
    } else {
      thrown<std::runtime_error>([&] { more.receivers[0].read(fail_at(piece)); });
      std::vector<std::byte> got(2 * piece);
      EXPECT_SAYS(thrown<Error>([&] { more.receivers[0].get(got); }), "inside a message (the user's own)");
    }
    group.barrier();
  });
}

// -- a channel to oneself ------------------------------------------------------------------------------------------

TEST(Channel, ToOneselfInTheWrongOrderIsRefusedAtOnce) {
  const Group group = Group::alone();
  for (const int slots : {1, 2, 8}) {
    ChannelSpec send = end_of_channel(Direction::send, 0, 100);
    send.slots = slots;
    Channels own = open_channels(group, std::vector{send, end_of_channel(Direction::receive, 0, 100)});
    Sender& sender = own.senders[0];
    Receiver& receiver = own.receivers[0];
    std::vector<std::byte> got(100);
    EXPECT_SAYS(thrown<BadInput>([&] { receiver.get(got); }), "channel 0 -> 0 is empty");
    EXPECT_SAYS(thrown<BadInput>([&] { static_cast<void>(receiver.wait()); }), "put a message before");
    // It works in the right order any number of times, and a refusal has no side effect.
    for (int k = 0; k < slots; ++k) sender.put(make_message(k, 100));
    EXPECT_SAYS(thrown<BadInput>([&] { sender.put(got); }), "channel 0 -> 0 has no free slot");
    EXPECT_SAYS(thrown<BadInput>([&] { static_cast<void>(sender.slot()); }), "receive a message first");
    for (int k = 0; k < 20; ++k) {
      receiver.get(got);
      EXPECT_EQ(got, make_message(k, 100));
      sender.put(make_message(k + slots, 100));
    }
  }
}

TEST(Channel, ToOneselfALongMessageDoesNotFit) {
  ChannelSpec send = end_of_channel(Direction::send, 0, 100);
  send.slot_bytes = 16;
  Channels own = open_channels(Group::alone(), std::vector{send, end_of_channel(Direction::receive, 0, 100)});
  EXPECT_SAYS(thrown<BadInput>([&] { own.senders[0].put(make_message(0, 100)); }), "larger slot_bytes");
  EXPECT_SAYS(thrown<Error>([&] { own.senders[0].put(make_message(0, 100)); }), "failed inside a message");
}

// More than 2^31 bytes in one message, through slots that are a small part of it.
TEST(Channel, MessagesBeyondTwoGibibytes) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer's bookkeeping of so much memory takes longer than a test may";
#endif
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
