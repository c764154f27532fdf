#include "onehop/group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "control_memory.h"
#include "group_state.h"
#include "onehop/error.h"
#include "rendezvous.h"
#include "shared_memory.h"
#include "support/ranks.h"

namespace onehop {
namespace {

using testing::on_ranks;
using testing::on_threads;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

void expect_gathers(const Group& group) {
  // Of different lengths, none at all, and longer than a mailbox.
  for (const int step : {0, 1, 7000}) {
    const auto contribution = [step](int rank) {
      return bytes_of(std::string(static_cast<std::size_t>(rank * step), static_cast<char>('a' + rank)));
    };
    const Gathered all = group.allgather(contribution(group.rank()));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(group.size()));
    for (int r = 0; r < group.size(); ++r)
      ASSERT_EQ(all[static_cast<std::size_t>(r)], contribution(r)) << "from rank " << r;
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
    EXPECT_EQ(group.neighbours_in_memory(), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(group.origin(), "launcher");
  });
}

TEST(Group, SplitsByColourAndOrdersByKey) {
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
    EXPECT_EQ(all[static_cast<std::size_t>(part.rank())], own);
    for (std::size_t r = 1; r < all.size(); ++r) EXPECT_GT(all[r - 1], all[r]) << "larger ranks come first";
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
  try {
    static_cast<void>(Group::alone().allocate(std::int64_t{1} << 50));
    FAIL() << "a petabyte was allocated";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("1073741824 MiB asked for"), std::string::npos) << text;
    EXPECT_NE(text.find("available"), std::string::npos) << text;
  }
  EXPECT_THROW(static_cast<void>(Group::alone().allocate(std::numeric_limits<std::int64_t>::max())), Error);
}

TEST(Group, ATimeLimitEndsAWait) {
  const auto ended = testing::fork_ranks(2, [](const Group& group) {
    group.set_timeout(0.2);
    EXPECT_DOUBLE_EQ(group.timeout(), 0.2);
    if (group.rank() == 1) {
      usleep(3'000'000);  // longer than a busy machine may keep the other rank from running
      return;
    }
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(group.barrier(), Timeout);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2500));
    // The others have not been in that barrier: what came next would meet the wrong step of theirs.
    try {
      group.barrier();
      ADD_FAILURE() << "the ranks are out of step";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("earlier collective step"), std::string::npos) << error.what();
    }
  });
  for (const auto& rank : ended) EXPECT_TRUE(rank.ok) << rank.message;
}

TEST(Group, RefusesImpossibleRanks) {
  const auto alone = [](std::span<const std::byte> mine) { return Gathered{{mine.begin(), mine.end()}}; };
  EXPECT_THROW(static_cast<void>(Group::from_allgather(1, 1, alone)), BadInput);
  EXPECT_THROW(static_cast<void>(Group::from_allgather(0, 0, alone)), BadInput);
  EXPECT_THROW(static_cast<void>(Group::from_allgather(0, 2, alone)), Mismatch)
      << "the all-gather gave one contribution";
  EXPECT_THROW(static_cast<void>(Group::from_allgather(0, 1, nullptr)), BadInput);
  EXPECT_THROW(Group::alone().set_timeout(-1), BadInput);
}

TEST(Group, ControlMemoryKnowsItsRanks) {
  const auto control = detail::ControlMemory::create(2);
  EXPECT_THROW(static_cast<void>(detail::join_control_memory(control.path(), 0, 3, 0)), Mismatch);
  const auto first = detail::join_control_memory(control.path(), 0, 2, 0);
  EXPECT_THROW(static_cast<void>(detail::join_control_memory(control.path(), 0, 2, 0)), Mismatch) << "taken";
  EXPECT_THROW(static_cast<void>(detail::join_control_memory("/proc/self/fd/9999", 0, 2, 0)), Error);
}

// What torchrun and srun tell: ranks that know nothing but a key and their number.
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
  // In a child, with an environment of its own: what does world() say?
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
        const Group group = Group::world();
        text = group.origin() + " of " + std::to_string(group.size());
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
  EXPECT_NE(world_says({{"RANK", "one"}, {"WORLD_SIZE", "2"}}).find("\"one\""), std::string::npos);
  EXPECT_NE(world_says({{"ONEHOP_TIMEOUT", "soon"}}).find("\"soon\""), std::string::npos);
}

TEST_F(World, AnEndedLauncherIsNamed) {
  const std::string text =
      world_says({{"ONEHOP_CONTROL", "/proc/1/fd/9999"}, {"ONEHOP_RANK", "0"}, {"ONEHOP_RANKS", "2"}});
  EXPECT_NE(text.find("onehop launch"), std::string::npos) << text;
}

}  // namespace
}  // namespace onehop
