// Channels over MPI. The ranks also share memory, so the transport is requested by name. What all transports do is in
// test_transport.cc.
#include "onehop/channel.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "onehop/error.h"
#include "tests/mpi/world.h"

namespace onehop {
namespace {

using testing::message;
using testing::world;
using Direction = ChannelSpec::Direction;

int next() { return (world().rank() + 1) % world().size(); }
int previous() { return (world().rank() + world().size() - 1) % world().size(); }

// To the next rank, from the previous one.
Channels open_ring(ChannelSpec shape) {
  ChannelSpec send = shape, receive = shape;
  send.peer = next();
  receive.direction = Direction::receive;
  receive.peer = previous();
  return open_channels(world(), std::vector<ChannelSpec>{send, receive}, TransportKind::mpi);
}

TEST(MpiChannels, ToTheOwnRankAreRefusedAtOnceWhenFull) {
  // Long enough that MPI keeps no copy and waits for the receiver, which is this rank.
  constexpr std::int64_t bytes = 1 << 20;
  std::vector<ChannelSpec> specs{{.direction = Direction::send, .peer = world().rank(), .bytes = bytes, .slots = 2},
                                 {.direction = Direction::receive, .peer = world().rank(), .bytes = bytes}};
  Channels own = open_channels(world(), specs, TransportKind::mpi);
  int sent = 0;
  const auto fill = [&] {
    for (; sent < 100; ++sent) own.senders[0].put(message(world().rank(), sent, bytes));
  };
  EXPECT_THROW(fill(), BadInput);
  EXPECT_GE(sent, 2);
  std::vector<std::byte> got(bytes);
  for (int k = 0; k < sent; ++k) {
    own.receivers[0].get(got);
    ASSERT_EQ(got, message(world().rank(), k, bytes));
  }
}

// Where tags start again from 0 (ONEHOP_TEST_MPI_TAGS makes them few), those of channels that are still open are left
// out.
TEST(MpiChannels, NeverShareATagWithAnOlderChannel) {
  constexpr std::int64_t bytes = 40000;
  Channels old = open_ring({.bytes = bytes, .slots = 2});
  std::vector<std::byte> got(bytes);
  for (int k = 0; k < 60; ++k) {
    Channels young = open_ring({.bytes = bytes, .slots = 2});
    old.senders.front().put(message(world().rank(), 2 * k, bytes));
    young.senders.front().put(message(world().rank(), 2 * k + 1, bytes));
    young.receivers.front().get(got);
    ASSERT_EQ(got, message(previous(), 2 * k + 1, bytes)) << k;
    old.receivers.front().get(got);
    ASSERT_EQ(got, message(previous(), 2 * k, bytes)) << k;
  }
  world().barrier();
}

// Fragments that travel in parts do not wait at their sender, so the receiver says when it has room.
TEST(MpiChannels, HoldBackASenderThatIsAheadByAllSlots) {
  constexpr std::int64_t bytes = 100'000;
  Channels ring = open_ring({.bytes = bytes, .slots = 2});
  Sender& sender = ring.senders.front();
  Receiver& receiver = ring.receivers.front();
  for (int k = 0; k < 2; ++k) sender.put(message(world().rank(), k, bytes));
  while (!receiver.ready()) {
    receiver.progress();
    sender.progress();
  }
  world().barrier();
  for (int poll = 0; poll < 1000; ++poll) sender.progress();
  EXPECT_FALSE(sender.ready());
  world().barrier();
  std::vector<std::byte> got(bytes);
  for (int k = 0; k < 20; ++k) {
    receiver.get(got);
    ASSERT_EQ(got, message(previous(), k, bytes)) << k;
    if (k < 18) sender.put(message(world().rank(), k + 2, bytes));
  }
  world().barrier();
}

// Receives are posted from the beginning. Closing cancels them, and later channels do not see their messages.
TEST(MpiChannels, CanBeClosedWithoutHavingBeenUsed) {
  for (int i = 0; i < 50; ++i) static_cast<void>(open_ring({.bytes = 100 + i, .slots = 4}));
  Channels ring = open_ring({.bytes = 100});
  ring.senders[0].put(message(world().rank(), 9, 100));
  std::vector<std::byte> got(100);
  ring.receivers[0].get(got);
  EXPECT_EQ(got, message(previous(), 9, 100));
}

// The sender closes before its long message has been requested.
TEST(MpiChannels, DeliverWhatWasSentBeforeTheyWereClosed) {
  constexpr std::int64_t bytes = 1 << 20;
  Receiver receiver;
  {
    Channels ring = open_ring({.bytes = bytes, .slots = 1});
    ring.senders[0].put(message(world().rank(), 4, bytes));
    receiver = std::move(ring.receivers[0]);
  }
  world().barrier();
  std::vector<std::byte> got(bytes);
  receiver.get(got);
  EXPECT_EQ(got, message(previous(), 4, bytes));
  world().barrier();
}

// Both sides close while unread messages are under way.
TEST(MpiChannels, MayLoseMessagesThatNobodyWanted) {
  {
    Channels ring = open_ring({.bytes = 300000, .slots = 2});
    ring.senders[0].put(message(world().rank(), 1, 300000));
    ring.senders[0].put(message(world().rank(), 2, 300000));
  }
  world().barrier();
  Channels ring = open_ring({.bytes = 300000});
  ring.senders[0].put(message(world().rank(), 3, 300000));
  std::vector<std::byte> got(300000);
  ring.receivers[0].get(got);
  EXPECT_EQ(got, message(previous(), 3, 300000));
}

TEST(MpiChannels, RunOutOfTimeAndGoOn) {
  Channels ring = open_ring({.bytes = 64});
  world().set_timeout(0.2);
  std::vector<std::byte> got(64);
  EXPECT_THROW(ring.receivers[0].get(got), Timeout);
  world().set_timeout(60);
  world().barrier();
  ring.senders[0].put(message(world().rank(), 0, 64));
  ring.receivers[0].get(got);
  EXPECT_EQ(got, message(previous(), 0, 64));
}

// Channels may be used by several threads even if MPI does not allow concurrent calls.
TEST(MpiChannels, MayBeUsedByDifferentThreads) {
  constexpr int threads = 3;
  std::vector<ChannelSpec> specs;
  for (int t = 0; t < threads; ++t) {
    specs.push_back({.direction = Direction::send, .peer = next(), .bytes = 20000, .tag = t});
    specs.push_back({.direction = Direction::receive, .peer = previous(), .bytes = 20000, .tag = t});
  }
  Channels all = open_channels(world(), specs, TransportKind::mpi);
  std::vector<int> wrong(threads, 0);
  std::vector<std::thread> running;
  for (std::size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      std::vector<std::byte> got(20000);
      for (int k = 0; k < 50; ++k) {
        all.senders[t].put(message(world().rank(), k + 1000 * static_cast<int>(t), 20000));
        all.receivers[t].get(got);
        if (got != message(previous(), k + 1000 * static_cast<int>(t), 20000)) ++wrong[t];
      }
    });
  }
  for (auto& thread : running) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(threads, 0));
}

}  // namespace
}  // namespace onehop
