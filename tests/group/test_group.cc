#include "onehop/group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/status.h"
#include "src/group/control_memory.h"
#include "src/group/group_state.h"
#include "src/group/rendezvous.h"
#include "src/group/shared_memory.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using testing::on_ranks;
using testing::on_threads;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

void expect_gathers(const Group& group) {
  // Contributions of different lengths: empty, short, and longer than a mailbox.
  for (const int step : {0, 1, 7000}) {
    const auto contribution = [step](int rank) {
      return bytes_of(std::string(static_cast<std::size_t>(rank * step), static_cast<char>('a' + rank)));
    };
    const Gathered all = group.allgather(contribution(group.rank()));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(group.size()));
    for (int r = 0; r < group.size(); ++r)
      ASSERT_TRUE(std::ranges::equal(all[static_cast<std::size_t>(r)], contribution(r))) << "from rank " << r;
  }
}

TEST(Group, AloneIsOneRank) {
  const Group group = Group::alone();
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.size(), 1);
  EXPECT_TRUE(group.shares_memory(0));
  expect_gathers(group);
  group.barrier();
  EXPECT_THROW(static_cast<void>(group.shares_memory(1)), BadInput);
}

TEST(Group, GathersOnProcessesAndThreads) {
  for (const int ranks : {2, 3, 4, 8}) on_ranks(ranks, expect_gathers);
  for (const int ranks : {2, 5}) on_threads(ranks, expect_gathers);
}

TEST(Group, RanksOfOneMachineShareMemory) {
  on_ranks(3, [](const Group& group) {
    EXPECT_EQ(group.local_ranks(), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(group.origin(), "launcher");
  });
}

TEST(Group, SplitsByColorAndOrdersByKey) {
  const auto check = [](const Group& group) {
    // Odd and even ranks, in the opposite order; the last rank belongs to neither.
    const bool out = group.rank() == group.size() - 1;
    const Group part = group.split(out ? -1 : group.rank() % 2, -group.rank());
    ASSERT_EQ(part.valid(), !out);
    if (out) return;
    const int members = group.size() / 2 + (group.size() % 2 == 0 ? (group.rank() % 2 == 0 ? 0 : -1) : 0);
    ASSERT_EQ(part.size(), members);
    const auto own = bytes_of(std::to_string(group.rank()));
    const Gathered all = part.allgather(own);
    EXPECT_TRUE(std::ranges::equal(all[static_cast<std::size_t>(part.rank())], own));
    for (std::size_t r = 1; r < all.size(); ++r) {
      EXPECT_TRUE(std::ranges::lexicographical_compare(all[r], all[r - 1])) << "larger ranks come first";
    }
    expect_gathers(part);
  };
  on_ranks(5, check);
  on_ranks(4, check);
  on_threads(5, check);
}

TEST(Group, AllocatesZeroedMemory) {
  const Group group = Group::alone();
  const SharedArray array = group.allocate(100'000);
  ASSERT_EQ(array.bytes().size(), 100'000U);
  for (const std::byte b : array.bytes()) ASSERT_EQ(b, std::byte{0});
  EXPECT_EQ(group.allocate(0).bytes().size(), 0U);
  EXPECT_THROW(static_cast<void>(group.allocate(-1)), BadInput);
}

TEST(Group, SaysHowMuchMemoryThereIs) {
  testing::expect_says([&] { static_cast<void>(Group::alone().allocate(std::int64_t{1} << 50)); }, "1 PiB requested",
                       "available");
  EXPECT_THROW(static_cast<void>(Group::alone().allocate(std::numeric_limits<std::int64_t>::max())), Error);
}

TEST(Group, ATimeLimitEndsAWait) {
  const testing::SharedCounter over;
  const auto ended = testing::fork_ranks(2, [&over](const Group& group) {
    group.set_timeout(0.2);
    EXPECT_DOUBLE_EQ(group.timeout(), 0.2);
    if (group.rank() == 1) {
      while (*over == 0) usleep(1000);
      return;
    }
    EXPECT_THROW(group.barrier(), Timeout);
    // The others were not in that barrier, so the next step would meet a wrong step of theirs.
    testing::expect_says([&] { group.barrier(); }, "earlier collective step");
    ++*over;
  });
  for (const auto& rank : ended) EXPECT_TRUE(rank.ok) << rank.message;
}

TEST(Group, RefusesImpossibleRanks) {
  const auto alone = [](std::span<const std::byte> mine) { return Gathered{{mine.begin(), mine.end()}}; };
  EXPECT_THROW(static_cast<void>(Group::from_allgather(1, 1, alone)), BadInput);
  EXPECT_THROW(static_cast<void>(Group::from_allgather(0, 0, alone)), BadInput);
  EXPECT_THROW(static_cast<void>(Group::from_allgather(0, 1, AllGather{})), BadInput);
  EXPECT_THROW(static_cast<void>(Group::from_allgather(0, 1, AllGatherMaker{})), BadInput);
  EXPECT_THROW(Group::alone().set_timeout(-1), BadInput);
}

// Returns the error message of a group of `size` ranks whose all-gather fails in call number `call` (from 0).
std::string says_of(int size, int call, const AllGather& wrong) {
  int calls = 0;
  const auto gather = [&](std::span<const std::byte> mine) {
    return calls++ == call ? wrong(mine) : Gathered{{mine.begin(), mine.end()}};
  };
  try {
    const Group group = Group::from_allgather(0, size, gather);
    ChannelSpec send;
    ChannelSpec receive;
    receive.direction = ChannelSpec::Direction::receive;
    static_cast<void>(open_channels(group, std::vector{send, receive}));
    static_cast<void>(group.split(0, 0));
    group.barrier();
  } catch (const BadInput& error) {
    return error.what();
  }
  return calls > call ? "nothing" : "";
}

TEST(Group, AnAllGatherThatGoesWrongIsToldWhatItDid) {
  const auto bytes = [](std::span<const std::byte> mine) { return std::vector<std::byte>(mine.begin(), mine.end()); };
  std::vector<std::byte> first;
  struct Case {
    const char* words;
    int size;
    AllGather wrong;
  };
  const std::vector<Case> cases = {
      {"returned 0 entries, but the group has 1 rank", 1, [&](auto) { return Gathered{}; }},
      {"returned 2 entries, but the group has 1 rank", 1,
       [&](auto mine) { return Gathered{bytes(mine), bytes(mine)}; }},
      {"returned 1 entry, but the group has 2 ranks", 2, [&](auto mine) { return Gathered{bytes(mine)}; }},
      {"entry 0 of its result has 10 bytes, fewer", 1, [&](auto mine) { return Gathered{bytes(mine.first(10))}; }},
      {"entry 0 of its result has", 1, [&](auto mine) { return Gathered{bytes(mine.first(mine.size() - 1))}; }},
      {"none may be cut or padded", 1,
       [&](auto mine) {
         std::vector<std::byte> padded = bytes(mine);
         padded.resize(4096);
         return Gathered{padded};
       }},
      {"does not begin like the contribution of rank 0", 1,
       [&](auto mine) { return Gathered{std::vector<std::byte>(mine.size())}; }},
      {"entry 1 of its result is the contribution of rank 0", 2,
       [&](auto mine) { return Gathered{bytes(mine), bytes(mine)}; }},
  };
  for (const auto& [words, size, wrong] : cases) {
    // In every all-gather that a group needs; a group with a missing second rank does not get further.
    int call = 0;
    for (std::string text; !(text = says_of(size, call, wrong)).empty(); ++call) {
      EXPECT_NE(text.find(words), std::string::npos) << "call " << call << ": " << text;
      EXPECT_NE(text.find("the all-gather passed to Group::from_allgather failed on rank 0"), std::string::npos);
      if (size > 1) break;
    }
    EXPECT_GE(call, size == 1 ? 6 : 0);
  }
}

TEST(Group, AnAllGatherThatHandsOutAnOldStepIsToldSo) {
  Gathered kept;
  const auto gather = [&](std::span<const std::byte> mine) {
    if (kept.empty()) kept = {{mine.begin(), mine.end()}};
    return kept;
  };
  testing::expect_says<BadInput>([&] { static_cast<void>(Group::from_allgather(0, 1, gather)); }, "failed on rank 0");
}

TEST(Group, ControlMemoryKnowsItsRanks) {
  const auto control = detail::ControlMemory::create(2);
  EXPECT_THROW(static_cast<void>(detail::join_control_memory(control.path(), 0, 3, 0)), Mismatch);
  const auto first = detail::join_control_memory(control.path(), 0, 2, 0);
  EXPECT_THROW(static_cast<void>(detail::join_control_memory(control.path(), 0, 2, 0)), Mismatch) << "taken";
  EXPECT_THROW(static_cast<void>(detail::join_control_memory("/proc/self/fd/9999", 0, 2, 0)), Error);
}

// Ranks that know only a key and their number, as torchrun and srun provide them.
TEST(Group, RanksMeetByKey) {
  const std::string key = "test." + std::to_string(getpid());
  std::vector<int> pids;
  for (int rank = 0; rank < 3; ++rank) {
    const int pid = fork();
    if (pid == 0) {
      bool good = false;
      try {
        const Group group(detail::make_group(rank, 3, "torchrun", detail::meet(key, rank, 3)));
        good = group.allgather(bytes_of("x")).size() == 3;
      } catch (const Error& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      _exit(good ? 0 : 1);
    }
    pids.push_back(pid);
  }
  for (const int pid : pids) {
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

class World : public ::testing::Test {
 protected:
  // Calls world() in a child with an environment of its own.
  static std::string world_says(const std::vector<std::pair<const char*, const char*>>& environment) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    const int pid = fork();
    if (pid == 0) {
      for (const char* name : {"ONEHOP_CONTROL", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                               "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS",
                               "SLURM_STEP_ID", "RANK", "WORLD_SIZE"})
        unsetenv(name);
      for (const auto& [name, value] : environment) setenv(name, value, 1);
      std::string text;
      try {
        // The first handle is destroyed before the second is requested.
        const auto* first = Group::world().state().get();
        const Group group = Group::world();
        group.barrier();
        text =
            group.origin() + " of " + std::to_string(group.size()) + (group.state().get() == first ? "" : ", another");
      } catch (const Error& error) {
        text = error.what();
      }
      static_cast<void>(!write(ends[1], text.data(), text.size()));
      _exit(0);
    }
    close(ends[1]);
    std::string text(4096, '\0');
    const ssize_t got = read(ends[0], text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    close(ends[0]);
    waitpid(pid, nullptr, 0);
    return text;
  }
};

TEST_F(World, WithoutALauncherIsOneRank) { EXPECT_EQ(world_says({}), "alone of 1"); }

TEST_F(World, IsMadeOnce) {
  const auto control = detail::ControlMemory::create(1);
  const std::string path = control.path();
  EXPECT_EQ(world_says({{"ONEHOP_CONTROL", path.c_str()}, {"ONEHOP_RANK", "0"}, {"ONEHOP_RANKS", "1"}}),
            "launcher of 1");
}

// A page has room for four interfaces, with the names that the system allows.
TEST(Group, StatusNamesInterfacesThatAreDown) {
  const Group group = Group::alone();
  detail::RankPage& page = group.state()->own_page();
  const auto down = [] {
    std::vector<std::string> all;
    for (const RankStatus& one : status_of_process(getpid())) all.insert(all.end(), one.down.begin(), one.down.end());
    return all;
  };
  const std::vector<std::string> names{"e0", "eight888", "fifteen15151515", "bond0.7"};
  for (const std::string& name : names) note_device(page, name, false);
  EXPECT_EQ(down(), names);
  note_device(page, "fifth", false);
  EXPECT_EQ(down(), names);
  note_device(page, "eight888", true);
  note_device(page, "unknown", true);
  EXPECT_EQ(down(), (std::vector<std::string>{"e0", "fifteen15151515", "bond0.7"}));
  note_device(page, "fifth", false);
  EXPECT_EQ(down(), (std::vector<std::string>{"e0", "fifth", "fifteen15151515", "bond0.7"}));
}

// The world is closed when its program ends, in order only if that ends with status 0.
TEST_F(World, IsClosedAtTheEndOfTheProgram) {
  for (const int status : {0, 4}) {
    const auto control = detail::ControlMemory::create(2);
    const std::string path = control.path();
    const int pid = fork();
    if (pid == 0) {
      setenv("ONEHOP_CONTROL", path.c_str(), 1);
      setenv("ONEHOP_RANK", "1", 1);
      setenv("ONEHOP_RANKS", "2", 1);
      static_cast<void>(Group::world());
      Group::world().barrier();
      std::exit(status);
    }
    const Group group(detail::make_group(0, 2, "launcher", detail::join_control_memory(path, 0, 2, 0)));
    group.barrier();
    waitpid(pid, nullptr, 0);
    EXPECT_EQ(group.state()->poll_peers(1).closed, status == 0 ? 1 : -1);
    EXPECT_EQ(group.state()->poll_peers(1).lost, status == 0 ? -1 : 1);
  }
}

// A peer's page may hold any number where a rank (plus one) is expected.
TEST(Group, IgnoresRanksOutsideTheGroupInTheWordsOfAPeer) {
  on_threads(2, [](const Group& group) {
    if (group.rank() == 1) {
      detail::RankPage& own = group.state()->own_page();
      own.reported_lost = 77;
      own.missed = 77;
      own.left = 1;
    }
    group.barrier();
    if (group.rank() == 0) {
      EXPECT_EQ(group.state()->poll_peers(1).lost, -1);
      EXPECT_EQ(group.state()->poll_peers(1).closed, 1);
      group.state()->pages[1].page->missed = ~std::uint32_t{0};
      EXPECT_EQ(group.state()->poll_peers(1).closed, 1);
      group.state()->pages[1].page->missed = 1;  // this rank itself
      EXPECT_EQ(group.state()->poll_peers(1).closed, 1);
    }
    group.barrier();
  });
}

TEST_F(World, ARankOfSeveralThatFindsItselfAloneSaysSo) {
  const std::string text = world_says({{"RANK", "1"},
                                       {"WORLD_SIZE", "2"},
                                       {"LOCAL_WORLD_SIZE", "2"},
                                       {"MASTER_ADDR", "localhost"},
                                       {"MASTER_PORT", "1"},
                                       {"ONEHOP_TIMEOUT", "0.3"}});
  EXPECT_NE(text.find("rank 1 of 2"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 0 was not found"), std::string::npos) << text;
}

TEST_F(World, ARankOfSeveralThatDoesNotKnowItsNumberIsNotARunOfItsOwn) {
  for (const char* size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"}) {
    const std::string text = world_says({{size, "4"}, {"SLURM_STEP_ID", "0"}, {"ONEHOP_MPI", "none"}});
    EXPECT_NE(text.find("one rank of 4"), std::string::npos) << size << ": " << text;
    EXPECT_NE(text.find("alone"), std::string::npos) << size << ": " << text;
    EXPECT_EQ(world_says({{size, "1"}, {"SLURM_STEP_ID", "0"}, {"ONEHOP_MPI", "none"}}), "alone of 1") << size;
  }
  // A batch script has the number of tasks of its job, and is one program.
  EXPECT_EQ(world_says({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"ONEHOP_MPI", "none"}}), "alone of 1");
}

TEST_F(World, UnreadableNumbersAreBadInput) {
  const std::string expected = "RANK: expected a number from 0 to 16777216, found '";
  EXPECT_EQ(world_says({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), expected + "one'");
  EXPECT_EQ(world_says({{"RANK", "16777217"}, {"WORLD_SIZE", "2"}}), expected + "16777217'");
  EXPECT_NE(world_says({{"ONEHOP_TIMEOUT", "soon"}}).find("'soon'"), std::string::npos);
}

TEST_F(World, SomeOfTheVariablesOfALauncherAreBadInput) {
  const std::string one = world_says({{"ONEHOP_RANKS", "2"}});
  EXPECT_NE(one.find("expected ONEHOP_RANK and ONEHOP_CONTROL in the environment beside ONEHOP_RANKS"),
            std::string::npos)
      << one;
  const std::string two = world_says({{"ONEHOP_RANK", "0"}, {"ONEHOP_CONTROL", "/proc/1/fd/9"}});
  EXPECT_NE(two.find("expected ONEHOP_RANKS in the environment beside ONEHOP_RANK and ONEHOP_CONTROL"),
            std::string::npos)
      << two;
}

TEST_F(World, AnEndedLauncherIsNamed) {
  const std::string text =
      world_says({{"ONEHOP_CONTROL", "/proc/1/fd/9999"}, {"ONEHOP_RANK", "0"}, {"ONEHOP_RANKS", "2"}});
  EXPECT_NE(text.find("onehop launch"), std::string::npos) << text;
}

}  // namespace
}  // namespace onehop
