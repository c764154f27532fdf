// What holds when things go wrong: ranks that are killed at any moment, that finish early, that prepare different things; time
// limits; memory that does not suffice; and nothing left behind.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "support/ranks.h"

namespace onehop {
namespace {

using testing::Ended;
using testing::fork_ranks;
using testing::ForkOptions;
using testing::on_ranks;
using testing::on_threads;
using Direction = ChannelSpec::Direction;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }
void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// A counter that this process and its forks share.
class SharedCounter {
 public:
  SharedCounter() : at_(mmap(nullptr, 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    new (at_) std::atomic<int>{0};
  }
  ~SharedCounter() { munmap(at_, 64); }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  std::atomic<int>& operator*() const { return *static_cast<std::atomic<int>*>(at_); }

 private:
  void* at_;
};

ChannelSpec end(Direction direction, int peer, std::int64_t bytes) {
  ChannelSpec spec;
  spec.direction = direction;
  spec.peer = peer;
  spec.bytes = bytes;
  return spec;
}

// A channel to the next rank and one from the last, in a ring.
Channels ring_of_channels(const Group& group, std::int64_t bytes) {
  const int next = (group.rank() + 1) % group.size();
  const int last = (group.rank() + group.size() - 1) % group.size();
  const std::vector<ChannelSpec> specs = {end(Direction::send, next, bytes), end(Direction::receive, last, bytes)};
  return open_channels(group, specs);
}

// A periodic halo in one dimension, bound to memory.
struct RingPlan {
  explicit RingPlan(const Group& group, std::int64_t sites = 1000, std::int64_t width = 100,
                    const PlanOptions& options = {}) {
    HaloSpec spec;
    spec.extents = {sites * group.size()};
    spec.grid = {group.size()};
    spec.widths = {{width, width}};
    spec.periodic = {true};
    memory.resize(static_cast<std::size_t>((sites + 2 * width) * 8));
    const std::vector<std::span<std::byte>> arrays = {memory};
    plan = std::make_unique<Plan>(group, halo(spec), arrays, options);
  }
  std::vector<std::byte> memory;
  std::unique_ptr<Plan> plan;
};

// -- a rank is killed ----------------------------------------------------------------------------------------------

struct Work {
  const char* name;
  std::function<void(const Group&)> forever;  // until something is thrown
  const char* where = "channel";              // what the errors of the others name
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
  ChannelSpec send = end(Direction::send, next, bytes);
  send.slot_bytes = 64 << 10;
  send.chunk_bytes = 1 << 10;
  const std::vector<ChannelSpec> specs = {send, end(Direction::receive, last, bytes)};
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
  // Everybody waits for a message that never comes, and sleeps.
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
    options.limit_seconds = 5;
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
    EXPECT_LT(seconds_since(killed), 2.0);
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

// The rank in the middle dies; the one behind it waits for the one before it, and still learns who it was.
TEST(Faults, WhoIsLostIsPassedOn) {
  ForkOptions options;
  options.limit_seconds = 5;
  const auto ended = fork_ranks(
      3,
      [](const Group& group) {
        // 2 -> 1 -> 0
        std::vector<ChannelSpec> specs;
        if (group.rank() > 0) specs.push_back(end(Direction::send, group.rank() - 1, 8));
        if (group.rank() < 2) specs.push_back(end(Direction::receive, group.rank() + 1, 8));
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

TEST(Faults, RankThatFinishedEarlyIsLostToThoseWhoWaitForIt) {
  const auto ended = fork_ranks(2, [](const Group& group) {
    Channels channels = ring_of_channels(group, 8);
    if (group.rank() == 0) static_cast<void>(channels.receivers[0].wait());
  });
  EXPECT_EQ(ended[0].exit_code, 3);
  EXPECT_NE(ended[0].message.find("rank 1 has closed its group"), std::string::npos) << ended[0].message;
  EXPECT_NE(ended[0].message.find("channel 1 -> 0"), std::string::npos) << ended[0].message;
  EXPECT_TRUE(ended[1].ok) << ended[1].message;
}

TEST(Faults, RankThatFinishedEarlyIsNotMissedByTheOthers) {
  on_ranks(3, [](const Group& group) {
    Channels channels = ring_of_channels(group, 8);
    RingPlan ring(group);
    ring.plan->run();
    std::vector<std::byte> word(8);
    channels.senders[0].put(word);
    if (group.rank() == 0) return;  // its message is still under way; rank 1 looks for it late
    nap(0.05);
    channels.receivers[0].get(word);
    // 1 and 2 still have to do with each other, long enough to fall asleep and look after the peers.
    if (group.rank() == 1) {
      nap(0.1);
      channels.senders[0].put(word);
    } else {
      channels.receivers[0].get(word);
    }
  });
}

// A message arrives, its sender leaves and ends, all while the receiver is looking after its peers. Looking in the wrong order
// takes the sender for lost.
TEST(Faults, LastMessageOfARankThatEndsIsReceived) {
  for (int repeat = 0; repeat < 40; ++repeat) {
    on_ranks(2, [&](const Group& group) {
      Channels channels = ring_of_channels(group, 8);
      std::vector<std::byte> word(8, std::byte{7});
      if (group.rank() == 0) {
        // About when the receiver's naps of 20 ms end.
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
    try {
      static_cast<void>(channels.receivers[0].wait());
      ADD_FAILURE() << "nothing was sent";
    } catch (const Timeout& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("rank 1"), std::string::npos) << message;
      EXPECT_NE(message.find("channel 1 -> 0"), std::string::npos) << message;
    }
    EXPECT_GT(seconds_since(begin), 0.19);
    EXPECT_LT(seconds_since(begin), 5);
    group.set_timeout(0);
    group.barrier();
  });
}

// The limit is for one wait: a plan that goes on moving, slowly, is not stopped.
TEST(Faults, TimeLimitStartsAnewWhenSomethingMoved) {
  on_ranks(2, [](const Group& group) {
    group.set_timeout(0.8);
    ChannelSpec send = end(Direction::send, 1 - group.rank(), 8 * 1024);
    send.slot_bytes = 1024;
    const std::vector<ChannelSpec> specs = {send, end(Direction::receive, 1 - group.rank(), 8 * 1024)};
    Channels channels = open_channels(group, specs);
    std::vector<std::byte> message(8 * 1024);
    if (group.rank() == 0) {
      channels.receivers[0].get(message);  // eight fragments, more than a second in all
      return;
    }
    // The same by hand, one fragment after the other.
    Sender& sender = channels.senders[0];
    for (int fragment = 0; fragment < 8; ++fragment) {
      nap(0.14);
      if (!sender.ready()) sender.wait_released();
      sender.publish(detail::whole, 1024);
      sender.advance();
    }
  });
}

// -- ranks that do not fit together --------------------------------------------------------------------------------

TEST(Faults, DifferentPlansAreReportedOnEveryRank) {
  const auto ended = fork_ranks(3, [](const Group& group) {
    RingPlan ring(group, 1000, group.rank() == 1 ? 50 : 100);
    ring.plan->run();
  });
  for (const Ended& rank : ended) {
    EXPECT_EQ(rank.exit_code, 1);
    EXPECT_NE(rank.message.find("rank 1"), std::string::npos) << rank.message;
    EXPECT_NE(rank.message.find("800"), std::string::npos) << rank.message;  // 100 sites of 8 bytes
    EXPECT_NE(rank.message.find("400"), std::string::npos) << rank.message;
    EXPECT_EQ(rank.message, ended[0].message);
  }
}

TEST(Faults, ImpossibleSlotsAreBadInput) {
  on_ranks(2, [](const Group& group) {
    for (const auto& [slots, slot_bytes] : {std::pair<int, std::int64_t>{2, std::int64_t{1} << 62}, {1 << 30, 64}}) {
      ChannelSpec send = end(Direction::send, 1 - group.rank(), 64);
      send.slots = slots;
      send.slot_bytes = slot_bytes;
      const std::vector<ChannelSpec> specs = {send, end(Direction::receive, 1 - group.rank(), 64)};
      EXPECT_THROW(static_cast<void>(open_channels(group, specs)), BadInput);
    }
  });
}

// An exchange in place whose two messages list their slices in different orders has to be packed as a whole. Before it, an odd
// number of uses has passed through a ring of four, which tells of every second release only.
Schedule crossed_exchange(std::int64_t half) {
  const auto place = [](int rank, std::int64_t offset, std::int64_t count) {
    return Place{rank, 0, Slice::range(offset, count)};
  };
  const auto both_ways = [&](std::int64_t offset, std::int64_t count) {
    return std::pair(Transfer{place(0, offset, count), place(1, offset, count), Combine::replace, Codec::raw},
                     Transfer{place(1, offset, count), place(0, offset, count), Combine::replace, Codec::raw});
  };
  Schedule schedule;
  schedule.ranks = 2;
  schedule.arrays = {{"u", 8, ElementType::bytes, {100}}};
  const auto [there, back] = both_ways(90, 1);
  schedule.rounds.push_back({{there, back}});
  const auto [low_there, low_back] = both_ways(0, half);
  const auto [high_there, high_back] = both_ways(half, half);
  schedule.rounds.push_back({{low_there, high_there, high_back, low_back}});
  return schedule;
}

TEST(Faults, ExchangeThatMustBePackedAsAWholeFitsOrIsRefused) {
  on_ranks(2, [](const Group& group) {
    group.set_timeout(2);
    PlanOptions options;
    options.slots = 4;
    options.slot_bytes = 64;
    std::vector<std::int64_t> u(100);
    const std::vector<std::span<std::byte>> arrays = {std::as_writable_bytes(std::span(u))};
    // Four fragments of eight elements, where one of the four slots may not have been given back.
    EXPECT_THROW(Plan(group, crossed_exchange(16), arrays, options), BadInput);
    Plan plan(group, crossed_exchange(12), arrays, options);
    for (int run = 0; run < 20; ++run) {
      for (std::size_t i = 0; i < u.size(); ++i)
        u[i] = static_cast<std::int64_t>(i) + 1000 * group.rank() + 10'000 * run;
      plan.run();
      for (std::size_t i = 0; i < 24; ++i) {
        EXPECT_EQ(u[i], static_cast<std::int64_t>(i) + 1000 * (1 - group.rank()) + 10'000 * run);
      }
    }
  });
}

// -- memory --------------------------------------------------------------------------------------------------------

TEST(Faults, TooLittleMemoryIsAnErrorOnEveryRank) {
  const auto ended = fork_ranks(2, [](const Group& group) {
    EXPECT_THROW(static_cast<void>(group.allocate(std::int64_t{1} << 46)), Error);
    // Only rank 0's memory would have to hold the slots; rank 1 hears of it, too.
    std::vector<ChannelSpec> specs = {group.rank() == 0 ? end(Direction::receive, 1, std::int64_t{1} << 37)
                                                        : end(Direction::send, 0, std::int64_t{1} << 37)};
    specs[0].slot_bytes = std::int64_t{1} << 37;
    static_cast<void>(open_channels(group, specs));
  });
  for (const Ended& rank : ended) {
    EXPECT_EQ(rank.exit_code, 1) << rank.message;
    EXPECT_NE(rank.message.find("rank 0"), std::string::npos) << rank.message;
    EXPECT_NE(rank.message.find("not enough memory"), std::string::npos) << rank.message;
    EXPECT_NE(rank.message.find("MiB"), std::string::npos) << rank.message;
  }
}

// -- nothing is left -----------------------------------------------------------------------------------------------

// What a process holds: its descriptors, its mappings of shared memory; and what lies in the machine's.
struct Holdings {
  std::size_t descriptors = 0;
  std::size_t mappings = 0;
  std::size_t threads = 0;
  std::set<std::string> shared_memory_files;
  friend bool operator==(const Holdings&, const Holdings&) = default;
  friend void PrintTo(const Holdings& held, std::ostream* out) {
    *out << held.descriptors << " descriptors, " << held.mappings << " mappings, " << held.threads << " threads, "
         << held.shared_memory_files.size() << " files in shared memory";
  }
};

std::set<std::string> names_in(const char* folder) {
  std::set<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder), closedir);
  if (!open) return names;
  while (const dirent* entry = readdir(open.get())) names.insert(entry->d_name);
  return names;
}

Holdings holdings() {
  Holdings now;
  now.descriptors = names_in("/proc/self/fd").size();
  now.threads = names_in("/proc/self/task").size();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    now.mappings += line.find("memfd:onehop") != std::string::npos ? 1 : 0;
  for (const std::string& name : names_in("/dev/shm")) {
    if (name.find("onehop") != std::string::npos) now.shared_memory_files.insert(name);
  }
  return now;
}

// The descriptors by which a rank watches the others in all-gathers are opened when it first waits long for them.
void wait_long(const Group& group) {
  for (int late = 0; late < group.size(); ++late) {
    if (group.rank() == late) nap(0.1);
    group.barrier();
  }
}

void use_everything(const Group& group) {
  Channels channels = ring_of_channels(group, 1000);
  const Channels mock = open_channels(group, std::vector<ChannelSpec>{}, TransportKind::mock);
  RingPlan ring(group);
  for (int i = 0; i < 3; ++i) ring.plan->run();
  const SharedArray array = group.allocate(1 << 20);
  const Group part = group.split(group.rank() % 2, 0);
  part.barrier();
  std::vector<std::byte> message(1000);
  channels.senders[0].put(message);
  channels.receivers[0].get(message);
}

TEST(Faults, NothingIsLeftByThreads) {
  on_threads(3, use_everything);  // whatever is kept for the whole process is there now
  const Holdings before = holdings();
  for (int i = 0; i < 3; ++i) on_threads(3, use_everything);
  const Holdings after = holdings();
  EXPECT_EQ(after, before);
}

TEST(Faults, NothingIsLeftInARank) {
  on_ranks(2, [](const Group& group) {
    use_everything(group);
    wait_long(group);
    const Holdings before = holdings();
    for (int i = 0; i < 3; ++i) use_everything(group);
    EXPECT_EQ(holdings(), before);
  });
}

TEST(Faults, NothingIsLeftAfterAnError) {
  on_ranks(2, [](const Group& group) {
    const auto fail = [&] {
      std::vector<ChannelSpec> specs = {end(Direction::send, 1 - group.rank(), 8),
                                        end(Direction::receive, 1 - group.rank(), 16)};
      EXPECT_THROW(static_cast<void>(open_channels(group, specs)), Mismatch);
      specs[1].bytes = 8;
      specs[0].slot_bytes = std::int64_t{1} << 37;
      EXPECT_THROW(static_cast<void>(open_channels(group, specs)), Error);
    };
    fail();
    wait_long(group);
    const Holdings before = holdings();
    fail();
    EXPECT_EQ(holdings(), before);
  });
}

TEST(Faults, NothingIsLeftByKilledRanks) {
  const Holdings before = holdings();
  for (int i = 0; i < 3; ++i) {
    const auto ended = fork_ranks(3, [](const Group& group) {
      RingPlan ring(group);
      ring.plan->run();
      if (group.rank() == 1) raise(SIGKILL);
      plan_runs(group);
    });
    EXPECT_EQ(ended[0].exit_code, 3) << ended[0].message;
  }
  EXPECT_EQ(holdings(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

}  // namespace
}  // namespace onehop
