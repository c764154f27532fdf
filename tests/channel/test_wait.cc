#include "onehop/wait.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/tuning.h"
#include "src/group/group_state.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"
#include "tests/support/transport_suite.h"

namespace onehop {
namespace {

using testing::end_of_channel;
using testing::on_ranks;
using testing::on_threads;
using Direction = ChannelSpec::Direction;

// One channel from each of ranks 1 and 2 to rank 0, which receives the message that arrives first.
void take_from_anyone(const Group& group) {
  constexpr int messages = 200;
  std::vector<ChannelSpec> specs;
  if (group.rank() == 0) {
    specs = {end_of_channel(Direction::receive, 1, 8), end_of_channel(Direction::receive, 2, 8)};
  } else {
    specs = {end_of_channel(Direction::send, 0, 8)};
  }
  Channels channels = open_channels(group, specs);
  if (group.rank() != 0) {
    for (int i = 0; i < messages; ++i) {
      static_cast<void>(channels.senders[0].slot());
      channels.senders[0].put();
    }
    group.barrier();  // a rank that has left cannot be waited for
    return;
  }
  int taken = 0;
  while (taken < 2 * messages) {
    wait_until(group, {.peer = 1, .what = "the test"},
               [&] { return channels.receivers[0].ready() || channels.receivers[1].ready(); });
    for (Receiver& receiver : channels.receivers) {
      while (receiver.ready()) {
        receiver.release();
        ++taken;
      }
    }
  }
  EXPECT_FALSE(channels.receivers[0].ready() || channels.receivers[1].ready());
  group.barrier();
}

// How often this thread has gone to sleep. A yield is not a sleep.
long naps() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

TEST(Wait, SleepsEarlyIfTheThreadIsToldTo) {
  on_ranks(1, [](const Group& group) {
    Tuning many = tuning();
    many.spins = many.spins_oversubscribed = 0;
    many.yields = 1 << 30;
    set_tuning(many);
    const auto naps_in = [&](std::chrono::milliseconds time) {
      const long before = naps();
      const auto end = std::chrono::steady_clock::now() + time;
      wait_until(group, {.peer = 0, .what = "the test"}, [&] { return std::chrono::steady_clock::now() > end; });
      return naps() - before;
    };
    constexpr std::chrono::milliseconds time{100};
    EXPECT_LE(naps_in(time), 2);
    set_sleep_early(true);
    long early = 0;  // of a busy machine this thread may get too little for as many naps, so try several times
    for (int i = 0; i < 50 && early < 5; ++i) early = naps_in(time);
    EXPECT_GE(early, 5);
    std::thread([&] { EXPECT_LE(naps_in(time), 2); }).join();  // only for its own thread
    set_sleep_early(false);
    EXPECT_LE(naps_in(time), 2);
  });
}

TEST(Wait, GoesOnWithWhatComesFirst) {
  on_threads(3, take_from_anyone);
  on_ranks(3, take_from_anyone);
}

// A returned slot ends a wait for a slot or an arrival.
TEST(Wait, IsWokenByARelease) {
  on_ranks(2, [](const Group& group) {
    const int peer = 1 - group.rank();
    ChannelSpec out = end_of_channel(Direction::send, peer, 8);
    out.slots = 2;
    const std::array specs = {out, end_of_channel(Direction::receive, peer, 8)};
    Channels channels = open_channels(group, specs);
    Sender& sender = channels.senders[0];
    Receiver& receiver = channels.receivers[0];
    constexpr int messages = 2000;
    int sent = 0;
    int received = 0;
    while (sent < messages || received < messages) {
      const auto can_send = [&] { return sent < messages && sender.ready(); };
      wait_until(group, {.peer = peer, .what = "the test"}, [&] { return can_send() || receiver.ready(); });
      if (receiver.ready()) {
        receiver.release();
        ++received;
      }
      if (can_send()) {
        static_cast<void>(sender.slot());
        sender.put();
        ++sent;
      }
    }
    group.barrier();
  });
}

TEST(Wait, EndsWithTheGroupsLimit) {
  const Group group = Group::alone();
  group.set_timeout(0.05);
  testing::expect_says<Timeout>(
      [&] { wait_until(group, {.peer = 0, .what = "something that never comes"}, [] { return false; }); },
      "something that never comes");
}

// A peer that has gone because of a rank of another machine says only that it missed that rank.
TEST(Wait, DoesNotSayHowARankOfAnotherMachineHasGone) {
  on_threads(3, [](const Group& group) {
    detail::GroupState& state = *group.state();
    group.barrier();
    if (group.rank() == 1) {
      state.own_page().missed = 0 + 1;
      state.own_page().left = 1;
    }
    if (group.rank() != 2) return;
    state.pages[0].page = nullptr;  // as if rank 0 were elsewhere
    try {
      wait_until(group, {.peer = 1, .what = "a test"}, [] { return false; });
      FAIL() << "nothing was thrown";
    } catch (const PeerLost& error) {
      EXPECT_EQ(error.rank(), 0);
      EXPECT_NE(std::string(error.what())
                    .find(" has closed its group, has ended or cannot be reached while rank 2 still "
                          "waits for rank 1, which has gone since, in a test; see the output of rank 0"),
                std::string::npos)
          << error.what();
    }
  });
}

}  // namespace
}  // namespace onehop
