// No resources are left behind, by ranks that end in any way, or by objects that a rank makes and destroys.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/plan.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"
#include "tests/support/transport_suite.h"

namespace onehop {
namespace {

using testing::end_of_channel;
using testing::fork_ranks;
using testing::nap;
using testing::on_ranks;
using testing::on_threads;
using testing::ring_of_channels;
using testing::RingPlan;
using Direction = ChannelSpec::Direction;

// The resources of a process: its descriptors, its mappings of shared memory, and the machine's shared memory files.
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

// A thread that was joined stays in /proc for a moment, a long one under an emulator.
std::size_t settled_threads() {
  std::size_t threads = names_in("/proc/self/task").size();
  for (int i = 0; i < 5; ++i) {
    nap(0.02);
    threads = std::min(threads, names_in("/proc/self/task").size());
  }
  return threads;
}

Holdings holdings() {
  Holdings now;
  now.descriptors = names_in("/proc/self/fd").size();
  now.threads = settled_threads();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    now.mappings += line.find("memfd:onehop") != std::string::npos ? 1 : 0;
  for (const std::string& name : names_in("/dev/shm")) {
    if (name.find("onehop") != std::string::npos) now.shared_memory_files.insert(name);
  }
  return now;
}

// A rank opens the descriptors by which it watches the others in all-gathers when it first waits long for them.
void wait_long(const Group& group) {
  for (int late = 0; late < group.size(); ++late) {
    group.barrier();
    if (group.rank() == late) nap(0.5);
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
  on_threads(3, use_everything);  // all resources that a process keeps exist now
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
      std::vector<ChannelSpec> specs = {end_of_channel(Direction::send, 1 - group.rank(), 8),
                                        end_of_channel(Direction::receive, 1 - group.rank(), 16)};
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
      for (;;) ring.plan->run();
    });
    EXPECT_EQ(ended[0].exit_code, 3) << ended[0].message;
  }
  EXPECT_EQ(holdings(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

}  // namespace
}  // namespace onehop
