// Messages with tags between two ranks. What arrives is compared with what the sender of that number has to send.
#include "onehop/collectives/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "tests/support/ranks.h"

namespace onehop::collectives {
namespace {

using onehop::testing::on_ranks;
using onehop::testing::on_threads;

std::vector<std::uint32_t> numbers(std::size_t length, int from, int to, std::int64_t tag) {
  std::mt19937 random(static_cast<unsigned>(from * 100 + to * 10) + static_cast<unsigned>(tag));
  std::vector<std::uint32_t> made(length);
  std::ranges::generate(made, std::ref(random));
  return made;
}

auto in(const std::vector<std::uint32_t>& array) { return std::as_bytes(std::span(array)); }
auto out(std::vector<std::uint32_t>& array) { return std::as_writable_bytes(std::span(array)); }

// Lengths around those of the packets.
const std::vector<std::size_t> lengths{0, 1, 251, 252, 253, 16384 + 251, 16384 + 252, 16384 + 253, 300'000};

// Every rank sends every length to every other one, all at once, and receives in the opposite order of tags.
void exchange_all(const Group& group) {
  Messages messages(group);
  std::vector<std::vector<std::uint32_t>> sent;
  std::vector<SendRequest> requests;
  for (int to = 0; to < group.size(); ++to) {
    for (std::size_t tag = 0; tag < lengths.size(); ++tag)
      sent.push_back(numbers(lengths[tag], group.rank(), to, static_cast<std::int64_t>(tag)));
  }
  for (int to = 0; to < group.size(); ++to) {
    for (std::size_t tag = 0; tag < lengths.size(); ++tag) {
      const auto& message = sent[static_cast<std::size_t>(to) * lengths.size() + tag];
      requests.push_back(messages.isend(in(message), to, static_cast<std::int64_t>(tag)));
    }
  }
  for (int from = 0; from < group.size(); ++from) {
    for (std::size_t tag = lengths.size(); tag-- > 0;) {
      std::vector<std::uint32_t> found(lengths[tag]);
      EXPECT_EQ(messages.receive(out(found), from, static_cast<std::int64_t>(tag)), from);
      EXPECT_EQ(found, numbers(lengths[tag], from, group.rank(), static_cast<std::int64_t>(tag)));
    }
  }
  for (SendRequest& request : requests) request.wait();
  for (SendRequest& request : requests) EXPECT_TRUE(request.test());
  group.barrier();
}

TEST(Messages, EveryLengthBetweenThreads) {
  for (const int ranks : {1, 2, 4}) on_threads(ranks, exchange_all);
}

TEST(Messages, EveryLengthBetweenProcesses) { on_ranks(3, exchange_all); }

TEST(Messages, AnyRankAndTheOrderOfEqualTags) {
  on_threads(3, [](const Group& group) {
    Messages messages(group);
    if (group.rank() != 0) {
      for (std::uint32_t i = 0; i < 50; ++i) {
        std::vector<std::uint32_t> message(1 + i * 40, static_cast<std::uint32_t>(group.rank()) * 100 + i);
        messages.send(in(message), 0, 7);
      }
    } else {
      std::vector<std::uint32_t> next(3, 0);
      for (int i = 0; i < 50; ++i) {
        for (const int source : {1, 2}) {
          std::vector<std::uint32_t> message(1 + static_cast<std::size_t>(i) * 40);
          EXPECT_EQ(messages.receive(out(message), source, 7), source);
          EXPECT_EQ(message.back(), static_cast<std::uint32_t>(source * 100 + i));
        }
      }
    }
    const auto mine = static_cast<std::uint32_t>(group.rank());
    std::vector<std::uint32_t> message{mine};
    if (group.rank() != 0) {
      messages.send(in(message), 0, 1);
    } else {
      std::vector<int> found;
      for (int i = 0; i < 2; ++i) {
        found.push_back(messages.receive(out(message), Messages::any_rank, 1));
        EXPECT_EQ(message[0], static_cast<std::uint32_t>(found.back()));
      }
      std::ranges::sort(found);
      EXPECT_EQ(found, (std::vector<int>{1, 2}));
    }
    group.barrier();
  });
}

TEST(Messages, WrongCallsAndLengths) {
  on_threads(2, [](const Group& group) {
    Messages messages(group);
    std::vector<std::uint32_t> array(4, 1);
    EXPECT_THROW(messages.send(in(array), 2), BadInput);
    EXPECT_THROW(messages.send(in(array), 0, -1), BadInput);
    EXPECT_THROW(messages.receive(out(array), -2), BadInput);
    EXPECT_THROW(messages.receive(out(array), group.rank()), BadInput);  // nothing sent to itself
    const int other = 1 - group.rank();
    messages.send(in(array), other, 3);
    std::vector<std::uint32_t> shorter(3);
    EXPECT_THROW(messages.receive(out(shorter), other, 3), Mismatch);
    array = {5, 6, 7};
    messages.send(in(array), other, 3);
    EXPECT_EQ(messages.receive(out(shorter), other, 3), other);
    EXPECT_EQ(shorter, array);
    group.barrier();
  });
}

// Nothing is written into memory of the program after an error.
TEST(Messages, TimeLimit) {
  on_threads(2, [](const Group& group) {
    Messages messages(group);
    const auto message = numbers(100'000, 0, 1, 0);
    std::vector<std::uint32_t> found(message.size());
    if (group.rank() == 0) {
      SendRequest request = messages.isend(in(message), 1);  // its first packets only
      EXPECT_FALSE(request.test());
      group.barrier();
    } else {
      group.barrier();
      group.set_timeout(0.05);
      EXPECT_THROW(messages.receive(out(found), 0), Timeout);
      EXPECT_THROW(messages.receive(out(found), 0), Error);
      EXPECT_THROW(messages.send(in(found), 0), Error);
      group.set_timeout(0);
    }
    group.barrier();
  });
}

}  // namespace
}  // namespace onehop::collectives
