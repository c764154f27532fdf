// Several hosts with several ranks each (`run.sh --hosts`, which gives ranks of one machine two names, or
// tests/hosts/run.py): ranks wait in shared memory while their messages are under way over MPI.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "onehop/channel.h"
#include "onehop/plan.h"
#include "onehop/wait.h"
#include "tests/mpi/hosts.h"

namespace onehop {
namespace {

using testing::message;
using testing::MpiHosts;
using testing::world;
using Direction = ChannelSpec::Direction;

// Longer than messages that MPI libraries send eagerly (Open MPI over TCP: 64 KiB; MPICH: megabytes).
constexpr std::int64_t sizes[] = {64 << 10, 1 << 20, 8 << 20};
constexpr int repeats = 3;

// 0 -> 2 over MPI, 2 -> 1 over MPI, 1 -> 0 in shared memory: rank 0's message leaves only while rank 0 waits for rank
// 1.
struct Triangle {
  Channels channels;
  std::int64_t bytes;

  explicit Triangle(std::int64_t size) : bytes(size) {
    const int rank = world().rank();
    std::vector<ChannelSpec> specs;
    const auto add = [&](int from, int to, std::int64_t length) {
      if (rank == from) specs.push_back({.direction = Direction::send, .peer = to, .bytes = length});
      if (rank == to) specs.push_back({.direction = Direction::receive, .peer = from, .bytes = length});
    };
    add(0, 2, bytes);
    add(2, 1, 8);
    add(1, 0, 8);
    channels = open_channels(world(), specs);
  }

  // `receive` waits for and takes one message of 8 bytes in shared memory.
  template <class Receive>
  void run(int number, const Receive& receive) {
    const int rank = world().rank();
    std::vector<std::byte> word(8);
    if (rank == 0) {
      channels.senders[0].put(message(0, number, bytes));
      receive(channels.receivers[0], word);
      EXPECT_EQ(word, message(0, number + 1, 8));
    } else if (rank == 1) {
      channels.receivers[0].get(word);
      channels.senders[0].put(word);
    } else if (rank == 2) {
      std::vector<std::byte> got(static_cast<std::size_t>(bytes));
      channels.receivers[0].get(got);
      EXPECT_EQ(got, message(0, number, bytes));
      channels.senders[0].put(message(0, number + 1, 8));
    }
  }
};

TEST_F(MpiHosts, SendAcrossWhileTheSenderWaitsInMemory) {
  for (const std::int64_t bytes : sizes) {
    SCOPED_TRACE(bytes);
    Triangle triangle(bytes);
    for (int k = 0; k < repeats; ++k) {
      triangle.run(k, [](Receiver& from, std::vector<std::byte>& word) { from.get(word); });
    }
    world().barrier();
  }
}

TEST_F(MpiHosts, SendAcrossWhileTheSenderWaitsForAnything) {
  for (const std::int64_t bytes : sizes) {
    SCOPED_TRACE(bytes);
    Triangle triangle(bytes);
    for (int k = 0; k < repeats; ++k) {
      triangle.run(k, [](Receiver& from, std::vector<std::byte>& word) {
        wait_until(world(), {.peer = 1, .what = "the test"}, [&] { return from.ready(); });
        from.get(word);
      });
    }
    world().barrier();
  }
}

// The wait is in a group that has no channel over MPI.
TEST_F(MpiHosts, SendAcrossWhileTheSenderWaitsInAnotherGroup) {
  const Group half = world().split(world().shares_memory(0) ? 0 : 1, world().rank());
  half.set_timeout(10);
  for (const std::int64_t bytes : sizes) {
    SCOPED_TRACE(bytes);
    Triangle triangle(bytes);
    const ChannelSpec spec{
        .direction = half.rank() == 0 ? Direction::receive : Direction::send, .peer = 1 - half.rank(), .bytes = 8};
    Channels inside = half.rank() < 2 && half.size() > 1 ? open_channels(half, {&spec, 1}) : open_channels(half, {});
    for (int k = 0; k < repeats; ++k) {
      if (world().rank() == 1) {
        std::vector<std::byte> word(8);
        triangle.channels.receivers[0].get(word);
        inside.senders[0].put(word);
        triangle.channels.senders[0].put(word);
        continue;
      }
      triangle.run(k, [&](Receiver& from, std::vector<std::byte>& word) {
        inside.receivers[0].get(word);
        from.get(word);
      });
    }
    world().barrier();
  }
}

// The same three messages as rounds of a plan. The last one has ends in shared memory only.
Schedule triangle_of_rounds(std::int64_t bytes) {
  Schedule schedule{"triangle", world().size(), {{"u", 1, ElementType::bytes, {bytes + 16}}}, {}, {}};
  const auto add = [&](int from, int to, std::int64_t begin, std::int64_t length) {
    schedule.rounds.emplace_back().transfers.push_back(
        {{from, 0, Slice::range(begin, length)}, {to, 0, Slice::range(begin, length)}});
  };
  add(0, 2, 0, bytes);
  add(2, 1, bytes, 8);
  add(1, 0, bytes, 8);
  return schedule;
}

template <class Finish>
void run_rounds(const Finish& finish) {
  for (const std::int64_t bytes : sizes) {
    SCOPED_TRACE(bytes);
    const int rank = world().rank();
    std::vector<std::byte> array(static_cast<std::size_t>(bytes) + 16);
    const std::span<std::byte> arrays[] = {array};
    Plan plan(world(), triangle_of_rounds(bytes), arrays);
    for (int k = 0; k < repeats; ++k) {
      const std::vector<std::byte> body = message(0, k, bytes), word = message(0, k + 1, 8);
      if (rank == 0) std::memcpy(array.data(), body.data(), body.size());
      if (rank == 2) std::memcpy(array.data() + bytes, word.data(), word.size());
      plan.start();
      finish(plan);
      if (rank == 2) {
        EXPECT_EQ(std::memcmp(array.data(), body.data(), body.size()), 0);
      }
      if (rank < 2) {
        EXPECT_EQ(std::memcmp(array.data() + bytes, word.data(), word.size()), 0);
      }
    }
    world().barrier();
  }
}

TEST_F(MpiHosts, FinishAPlanWhoseLastRoundIsInMemory) {
  run_rounds([](Plan& plan) { plan.finish(); });
}

TEST_F(MpiHosts, TestAPlanWhoseLastRoundIsInMemory) {
  run_rounds([](Plan& plan) {
    while (!plan.test()) {
    }
    plan.finish();
  });
}

}  // namespace
}  // namespace onehop
