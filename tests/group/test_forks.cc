// A process that a rank forks is not a rank: it neither uses the rank's group, channels and plans nor closes them when
// it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/plan.h"
#include "src/group/control_memory.h"
#include "src/group/driven.h"
#include "src/group/group_state.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"

namespace onehop {
namespace {

using testing::on_ranks;
using testing::ring_of_channels;
using testing::RingPlan;

// Runs `work` in a forked process, which ends as `end` does. Returns whether `work` completed.
bool in_child(const std::function<void()>& work, const std::function<void()>& end = [] { _exit(0); }) {
  std::fflush(nullptr);
  const int pid = fork();
  if (pid == 0) {
    work();
    if (::testing::Test::HasFailure()) _exit(1);
    end();
    _exit(2);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Returns the error message of `step` in a forked process.
void expect_refused(const char* name, const std::function<void()>& step) {
  try {
    step();
    ADD_FAILURE() << name << " worked in a forked process";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("which was forked from it"), std::string::npos)
        << name << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find("belongs to process " + std::to_string(getppid())), std::string::npos)
        << name << ": " << error.what();
  }
}

TEST(Fork, AChildThatEndsClosesNothingOfItsParents) {
  on_ranks(2, [](const Group& group) {
    auto kept = std::make_unique<Group>(group.split(0, group.rank()));
    auto channels = std::make_unique<Channels>(ring_of_channels(*kept, 8));
    auto plan = std::make_unique<RingPlan>(*kept);
    if (group.rank() == 0) {
      // The child destroys everything, as a program that returns from main does.
      ASSERT_TRUE(in_child([&] {
        plan.reset();
        channels.reset();
        kept.reset();
      }));
      ASSERT_TRUE(in_child([] {}, [] { std::exit(0); }));
    }
    group.barrier();
    EXPECT_EQ(kept->state()->poll_peers(1 - group.rank()).lost, -1);
    EXPECT_EQ(kept->state()->poll_peers(1 - group.rank()).closed, -1);
    kept->barrier();
    const std::vector<std::byte> message(8, std::byte{7});
    std::vector<std::byte> got(8);
    channels->senders[0].put(message);
    channels->receivers[0].get(got);
    EXPECT_EQ(got, message);
    plan->plan->start();
    plan->plan->finish();
  });
}

TEST(Fork, AChildUsesNothingOfItsParents) {
  on_ranks(2, [](const Group& group) {
    Channels channels = ring_of_channels(group, 8);
    Channels arrived = ring_of_channels(group, 8);
    RingPlan plan(group);
    RingPlan started(group);
    const std::vector<std::byte> message(8, std::byte{7});
    std::vector<std::byte> got(8);
    arrived.senders[0].put(message);
    group.barrier();
    if (group.rank() == 0) started.plan->start();
    if (group.rank() == 0) {
      ASSERT_TRUE(in_child([&] {
        expect_refused("barrier", [&] { group.barrier(); });
        expect_refused("split", [&] { static_cast<void>(group.split(0, 0)); });
        expect_refused("open_channels", [&] { static_cast<void>(ring_of_channels(group, 8)); });
        expect_refused("put", [&] { channels.senders[0].put(message); });
        expect_refused("slot", [&] { static_cast<void>(channels.senders[0].slot()); });
        expect_refused("get", [&] { channels.receivers[0].get(got); });
        expect_refused("release", [&] { arrived.receivers[0].release(); });
        expect_refused("start", [&] { plan.plan->start(); });
        expect_refused("finish", [&] { started.plan->finish(); });
        expect_refused("test", [&] { static_cast<void>(started.plan->test()); });
      }));
    }
    group.barrier();
    if (group.rank() == 1) started.plan->start();
    started.plan->finish();
    channels.senders[0].put(std::vector<std::byte>(8, std::byte{9}));
    channels.receivers[0].get(got);
    EXPECT_EQ(got, std::vector<std::byte>(8, std::byte{9}));
    arrived.receivers[0].get(got);
    EXPECT_EQ(got, message);
    plan.plan->start();
    plan.plan->finish();
  });
}

TEST(Fork, AChildMayMakeGroupsOfItsOwn) {
  const Group group = Group::alone();
  EXPECT_TRUE(in_child([&] {
    expect_refused("barrier", [&] { group.barrier(); });
    const Group own = Group::alone();
    own.barrier();
    Channels channels = ring_of_channels(own, 8);
    channels.senders[0].put(std::vector<std::byte>(8));
  }));
  group.barrier();
}

class CountedDriven final : public detail::Driven {
 public:
  CountedDriven() { join(); }
  ~CountedDriven() { leave(); }
  void drive() noexcept override { ++driven; }
  int driven = 0;
};

TEST(Fork, WaitsOfAChildDriveNothingOfItsParents) {
  CountedDriven parents;
  ASSERT_TRUE(in_child([&] {
    EXPECT_FALSE(detail::Driven::drive_any());
    EXPECT_EQ(parents.driven, 0);
    const CountedDriven own;
    for (int wait = 0; wait < 4; ++wait) EXPECT_TRUE(detail::Driven::drive_any());
    EXPECT_EQ(parents.driven, 0);
    EXPECT_EQ(own.driven, 4);
  }));
  EXPECT_TRUE(detail::Driven::drive_any());
  EXPECT_EQ(parents.driven, 1);
}

TEST(Fork, TheWorldOfARankIsNotTheWorldOfItsChild) {
  const auto control = detail::ControlMemory::create(2);
  std::vector<int> pids;
  for (const char* rank : {"0", "1"}) {
    pids.push_back(fork());
    if (pids.back() != 0) continue;
    setenv("ONEHOP_CONTROL", control.path().c_str(), 1);
    setenv("ONEHOP_RANK", rank, 1);
    setenv("ONEHOP_RANKS", "2", 1);
    bool good = false;
    {
      const Group world = Group::world();
      good = in_child([] { expect_refused("Group::world()", [] { static_cast<void>(Group::world()); }); },
                      [] { std::exit(0); });
      world.barrier();
      good = good && world.state()->poll_peers(1 - world.rank()).closed == -1;
      world.barrier();
    }
    _exit(good ? 0 : 1);
  }
  for (const int pid : pids) {
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace onehop
