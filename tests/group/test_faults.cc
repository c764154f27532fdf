// Faults while data moves: ranks that are killed at any moment or finish early, and time limits. Ranks that disagree
// are tested in test_faults_disagreement.cc, leftover resources in test_faults_leftovers.cc.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <thread>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "src/group/agreement.h"
#include "src/group/shared_memory.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"
#include "tests/support/transport_suite.h"

namespace onehop {
namespace {

using testing::Clock;
using testing::end_of_channel;
using testing::Ended;
using testing::fork_ranks;
using testing::ForkOptions;
using testing::nap;
using testing::on_ranks;
using testing::ring_of_channels;
using testing::RingPlan;
using testing::seconds_since;
using testing::SharedCounter;
using Direction = ChannelSpec::Direction;

// -- a rank is killed ----------------------------------------------------------------------------------------------

struct Work {
  const char* name;
  std::function<void(const Group&)> forever;  // runs until it throws
  const char* where = "channel";              // named in the errors of the other ranks
  friend void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }
};

void ping_pong(const Group& group) {
  Channels channels = ring_of_channels(group, 64);
  const std::vector<std::byte> message(64);
  std::vector<std::byte> got(64);
  for (;;) {
    channels.senders[0].put(message);
    channels.receivers[0].get(got);
  }
}

void long_messages(const Group& group) {
  // Many chunks in several fragments: ranks are killed in the middle of messages.
  constexpr std::int64_t bytes = 1 << 20;
  const int next = (group.rank() + 1) % group.size();
  const int last = (group.rank() + group.size() - 1) % group.size();
  ChannelSpec send = end_of_channel(Direction::send, next, bytes);
  send.slot_bytes = 64 << 10;
  send.chunk_bytes = 1 << 10;
  const std::vector<ChannelSpec> specs = {send, end_of_channel(Direction::receive, last, bytes)};
  Channels channels = open_channels(group, specs);
  std::vector<std::byte> message(static_cast<std::size_t>(bytes));
  for (;;) {
    if (group.rank() == 0) channels.senders[0].put(message);
    channels.receivers[0].get(message);
    if (group.rank() != 0) channels.senders[0].put(message);
  }
}

void plan_runs(const Group& group) {
  RingPlan ring(group);
  for (;;) ring.plan->run();
}

void plan_tests(const Group& group) {
  RingPlan ring(group);
  for (;;) {
    ring.plan->start();
    while (!ring.plan->test()) {
    }
    ring.plan->finish();
  }
}

void sleepers(const Group& group) {
  // All ranks wait for a message that never arrives, and fall asleep.
  Channels channels = ring_of_channels(group, 8);
  static_cast<void>(channels.receivers[0].wait());
}

void full_slots(const Group& group) {
  Channels channels = ring_of_channels(group, 8);
  const std::vector<std::byte> message(8);
  for (;;) channels.senders[0].put(message);
}

void barriers(const Group& group) {
  for (;;) group.barrier();
}

void preparation(const Group& group) {
  for (;;) RingPlan ring(group);
}

void runs_and_barriers(const Group& group) {
  RingPlan ring(group);
  for (;;) {
    ring.plan->run();
    group.barrier();
  }
}

class Killed : public ::testing::TestWithParam<Work> {};

TEST_P(Killed, EveryOtherRankThrowsPeerLostInTime) {
  const Work& work = GetParam();
  std::mt19937 random(std::random_device{}());
  for (const int ranks : {2, 3, 4}) {
    const int victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const double delay = 1e-6 * static_cast<double>(random() % 60'000);
    SCOPED_TRACE("rank " + std::to_string(victim) + " of " + std::to_string(ranks) + " killed after " +
                 std::to_string(delay) + " s");
    const SharedCounter there;
    Clock::time_point killed;
    ForkOptions options;
    options.meanwhile = [&](const std::vector<int>& pids) {
      while (*there < ranks) nap(0.001);
      nap(delay);
      killed = Clock::now();
      kill(pids[static_cast<std::size_t>(victim)], SIGKILL);
    };
    const auto ended = fork_ranks(
        ranks,
        [&](const Group& group) {
          ++*there;
          work.forever(group);
        },
        options);
    EXPECT_LT(seconds_since(killed), 50);  // usually 0.05 s, at most 2 s; more on a busy machine
    for (int r = 0; r < ranks; ++r) {
      const Ended& rank = ended[static_cast<std::size_t>(r)];
      if (r == victim) {
        EXPECT_EQ(rank.signal, SIGKILL);
        continue;
      }
      EXPECT_EQ(rank.exit_code, 3) << "rank " << r << ": " << rank.message;
      EXPECT_NE(rank.message.find("rank " + std::to_string(victim) + " "), std::string::npos)
          << "rank " << r << ": " << rank.message;
      // It may have been killed before the work had begun.
      EXPECT_TRUE(rank.message.find(work.where) != std::string::npos ||
                  rank.message.find("set-up") != std::string::npos)
          << "rank " << r << ": " << rank.message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, Killed,
                         ::testing::Values(Work{"PingPong", ping_pong}, Work{"LongMessages", long_messages},
                                           Work{"PlanRuns", plan_runs}, Work{"PlanTests", plan_tests},
                                           Work{"Sleepers", sleepers}, Work{"FullSlots", full_slots},
                                           Work{"Barriers", barriers, "set-up"},
                                           Work{"Preparation", preparation, "set-up"},
                                           Work{"RunsAndBarriers", runs_and_barriers}),
                         [](const auto& info) { return std::string(info.param.name); });

// Rank 1 fails in a collective step because rank 2 has died after its last contribution. Rank 0 lost rank 2, too.
TEST(Faults, AFailureBecauseOfALossIsALossOnEveryRank) {
  const auto ended = fork_ranks(3,
                                [](const Group& group) {
                                  detail::GroupState& state = *group.state();
                                  if (group.rank() == 2) {
                                    const std::uint64_t before = state.own_page().steps.load();
                                    std::thread step([&] { detail::agree(state, "a test", nullptr); });
                                    while (state.own_page().steps.load() == before) nap(0.001);  // the step has begun
                                    nap(0.05);
                                    ::kill(getpid(), SIGKILL);
                                  }
                                  std::exception_ptr failure;
                                  if (group.rank() == 1) {
                                    while (state.poll_peers(2).lost != 2) nap(0.001);
                                    failure =
                                        std::make_exception_ptr(PeerLost(2, "rank 2 has taken its memory with it"));
                                  }
                                  detail::agree(state, "a test", failure);
                                },
                                {});
  for (const int rank : {0, 1}) {
    EXPECT_EQ(ended[static_cast<std::size_t>(rank)].exit_code, 3) << ended[static_cast<std::size_t>(rank)].message;
    EXPECT_NE(ended[static_cast<std::size_t>(rank)].message.find("rank 2 "), std::string::npos)
        << ended[static_cast<std::size_t>(rank)].message;
  }
}

// The middle rank of a chain dies. The last one waits for the first, and still learns which rank died.
TEST(Faults, WhoIsLostIsPassedOn) {
  ForkOptions options;
  const auto ended = fork_ranks(
      3,
      [](const Group& group) {
        // 2 -> 1 -> 0
        std::vector<ChannelSpec> specs;
        if (group.rank() > 0) specs.push_back(end_of_channel(Direction::send, group.rank() - 1, 8));
        if (group.rank() < 2) specs.push_back(end_of_channel(Direction::receive, group.rank() + 1, 8));
        Channels channels = open_channels(group, specs);
        if (group.rank() == 2) raise(SIGKILL);
        static_cast<void>(channels.receivers[0].wait());
      },
      options);
  for (const std::size_t r : {std::size_t{0}, std::size_t{1}}) {
    EXPECT_EQ(ended[r].exit_code, 3);
    EXPECT_EQ(ended[r].message.rfind("rank 2 ", 0), 0U) << ended[r].message;
  }
}

// -- a rank finishes early -----------------------------------------------------------------------------------------

// The cycles of four ranks connect all of them, so none moves anything before rank 2 begins. Each of the others must
// wait for rank 2 then, and not for one another.
TEST(Faults, RankThatNeverBeginsAnExchangeInPlaceIsLostToAllOfItsRanks) {
  const auto ended = fork_ranks(4, [](const Group& group) {
    PermuteBitsSpec spec{.bits = 9, .local_bits = 7, .permutation = {5, 2, 0, 3, 8, 1, 6, 4, 7}, .element_bytes = 8};
    SharedArray array = group.allocate(8 << 7);
    const std::span<std::byte> bytes = array.bytes().first(8 << 7);
    Plan plan(group, permute_bits(spec), std::span(&bytes, 1));
    if (group.rank() != 2) plan.run();
  });
  for (const std::size_t rank : {0U, 1U, 3U}) {
    EXPECT_EQ(ended[rank].exit_code, 3) << rank;
    EXPECT_EQ(ended[rank].message.rfind("rank 2 (process ", 0), 0U) << ended[rank].message;
  }
  EXPECT_TRUE(ended[2].ok) << ended[2].message;
}

TEST(Faults, RankThatFinishedEarlyIsLostToThoseWhoWaitForIt) {
  const auto ended = fork_ranks(2, [](const Group& group) {
    Channels channels = ring_of_channels(group, 8);
    if (group.rank() == 0) static_cast<void>(channels.receivers[0].wait());
  });
  EXPECT_EQ(ended[0].exit_code, 3);
  EXPECT_EQ(ended[0].message.rfind("rank 1 (process ", 0), 0U) << ended[0].message;
  EXPECT_NE(ended[0].message.find(") has closed its group"), std::string::npos) << ended[0].message;
  EXPECT_NE(ended[0].message.find("channel 1 -> 0"), std::string::npos) << ended[0].message;
  EXPECT_TRUE(ended[1].ok) << ended[1].message;
}

// Rank 2 leaves in order, then rank 0, which waits for it in a channel. Rank 1 waits for both in a barrier, finds rank
// 0 gone, and still names rank 2.
TEST(Faults, TheFirstThatLeftIsNamedInSetUpToo) {
  const auto ended = fork_ranks(3, [](const Group& group) {
    std::vector<ChannelSpec> specs;
    if (group.rank() == 0) specs.push_back(end_of_channel(Direction::receive, 2, 8));
    if (group.rank() == 2) specs.push_back(end_of_channel(Direction::send, 0, 8));
    Channels channels = open_channels(group, specs);
    if (group.rank() == 0) static_cast<void>(channels.receivers[0].wait());
    if (group.rank() == 1) group.barrier();
  });
  for (const std::size_t r : {std::size_t{0}, std::size_t{1}}) {
    EXPECT_EQ(ended[r].exit_code, 3);
    EXPECT_EQ(ended[r].message.rfind("rank 2 ", 0), 0U) << ended[r].message;
  }
}

TEST(Faults, RankThatFinishedEarlyIsNotMissedByTheOthers) {
  on_ranks(3, [](const Group& group) {
    Channels channels = ring_of_channels(group, 8);
    RingPlan ring(group);
    ring.plan->run();
    std::vector<std::byte> word(8);
    channels.senders[0].put(word);
    if (group.rank() == 0) return;  // its message is still under way; rank 1 receives it late
    nap(0.05);
    channels.receivers[0].get(word);
    // Ranks 1 and 2 communicate on, for long enough to fall asleep and check their peers.
    if (group.rank() == 1) {
      nap(0.1);
      channels.senders[0].put(word);
    } else {
      channels.receivers[0].get(word);
    }
  });
}

// A message arrives and its sender leaves and ends, all while the receiver checks its peers. A check in the wrong
// order would take the sender for lost.
TEST(Faults, LastMessageOfARankThatEndsIsReceived) {
  for (int repeat = 0; repeat < 40; ++repeat) {
    on_ranks(2, [&](const Group& group) {
      Channels channels = ring_of_channels(group, 8);
      std::vector<std::byte> word(8, std::byte{7});
      if (group.rank() == 0) {
        // At about the end of one of the receiver's naps of 20 ms.
        nap(0.0195 + 0.00005 * repeat);
        channels.senders[0].put(word);
      } else {
        word.assign(8, std::byte{0});
        channels.receivers[0].get(word);
        EXPECT_EQ(word[3], std::byte{7});
      }
    });
  }
}

// -- time limits ---------------------------------------------------------------------------------------------------

TEST(Faults, TimeLimitNamesRankAndChannel) {
  on_ranks(2, [](const Group& group) {
    Channels channels = ring_of_channels(group, 8);
    if (group.rank() == 1) {
      group.barrier();
      return;
    }
    group.set_timeout(0.2);
    const auto begin = Clock::now();
    testing::expect_says<Timeout>([&] { static_cast<void>(channels.receivers[0].wait()); }, "rank 1", "channel 1 -> 0");
    EXPECT_GT(seconds_since(begin), 0.19);
    group.set_timeout(0);
    group.barrier();
  });
}

// The limit applies to one wait: it does not stop a plan that keeps moving slowly.
TEST(Faults, TimeLimitStartsAnewWhenSomethingMoved) {
  on_ranks(2, [](const Group& group) {
    group.set_timeout(0.8);
    constexpr std::int64_t bytes = 8192;
    ChannelSpec send = end_of_channel(Direction::send, 1 - group.rank(), bytes);
    send.slot_bytes = 1024;
    const std::vector<ChannelSpec> specs = {send, end_of_channel(Direction::receive, 1 - group.rank(), bytes)};
    Channels channels = open_channels(group, specs);
    std::vector<std::byte> message(bytes);
    if (group.rank() == 0) {
      channels.receivers[0].get(message);  // eight fragments, more than a second in total
      return;
    }
    // Sends the same message by hand, one fragment after the other.
    Sender& sender = channels.senders[0];
    for (int fragment = 0; fragment < 8; ++fragment) {
      nap(0.14);
      if (!sender.ready()) sender.wait_released();
      sender.publish(detail::whole, 1024);
      sender.advance();
    }
  });
}

// The kernel closes the descriptors of a process that ends before it shows that the process has ended.
TEST(Faults, MemoryThatHasVanishedMeansThatItsProcessHasEndedAfterTheError) {
  const pid_t ending = fork();
  if (ending == 0) {
    nap(0.2);  // without the memory, as during an end that takes long
    _exit(0);
  }
  EXPECT_THROW(static_cast<void>(detail::SharedMemory::open(ending, 1000, 1)), Error);
  EXPECT_EQ(waitpid(ending, nullptr, WNOHANG), ending);
}

}  // namespace
}  // namespace onehop
