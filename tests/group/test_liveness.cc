// Threads that ask at a time whether processes live.
#include "src/group/liveness.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "tests/support/meeting.h"

namespace onehop {
namespace {

auto open_descriptors() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

TEST(ProcessWatch, ThreadsThatAskAtATimeOpenOneDescriptorPerProcess) {
  constexpr int processes = 200;
  constexpr int threads = 4;
  const testing::Child child(geteuid(), [] {});
  const auto before = open_descriptors();
  std::optional<detail::ProcessWatch> watch(processes);
  {
    std::barrier<> together(threads);
    std::vector<std::jthread> asking;
    for (int thread = 0; thread < threads; ++thread) {
      asking.emplace_back([&] {
        for (int index = 0; index < processes; ++index) {
          together.arrive_and_wait();
          EXPECT_FALSE(watch->ended(index, child.pid()));
        }
      });
    }
  }
  EXPECT_EQ(open_descriptors() - before, processes);
  watch.reset();
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace onehop
