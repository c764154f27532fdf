// Several hosts with several ranks each (`run.sh --hosts`, which gives ranks of one machine two names, or
// tests/hosts/run.py): ranks wait in shared memory while their messages are under way over MPI.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "collectives/relay.h"
#include "onehop/channel.h"
#include "onehop/collectives/collectives.h"
#include "onehop/error.h"
#include "onehop/plan.h"
#include "onehop/wait.h"
#include "tests/mpi/world.h"

namespace onehop {
namespace {

using testing::world;
using Direction = ChannelSpec::Direction;

// Longer than messages that MPI libraries send eagerly (Open MPI over TCP: 64 KiB; MPICH: megabytes).
constexpr std::int64_t sizes[] = {64 << 10, 1 << 20, 8 << 20};
constexpr int repeats = 3;

std::vector<std::byte> message(int number, std::int64_t bytes) {
  std::vector<std::byte> made(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i] = static_cast<std::byte>((static_cast<std::size_t>(number) * 37 + i * 7 + (i >> 8) * 13) & 0xff);
  }
  return made;
}

// Ranks 0 and 1 share memory; rank 2 is on another host.
bool two_hosts() {
  return world().size() >= 3 && world().shares_memory(0) == world().shares_memory(1) &&
         world().shares_memory(0) != world().shares_memory(2);
}

class MpiHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!two_hosts()) GTEST_SKIP() << "for two hosts, the first with ranks 0 and 1";
    world().set_timeout(10);
  }
  void TearDown() override { world().set_timeout(60); }
};

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
      channels.senders[0].put(message(number, bytes));
      receive(channels.receivers[0], word);
      EXPECT_EQ(word, message(number + 1, 8));
    } else if (rank == 1) {
      channels.receivers[0].get(word);
      channels.senders[0].put(word);
    } else if (rank == 2) {
      std::vector<std::byte> got(static_cast<std::size_t>(bytes));
      channels.receivers[0].get(got);
      EXPECT_EQ(got, message(number, bytes));
      channels.senders[0].put(message(number + 1, 8));
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
      const std::vector<std::byte> body = message(k, bytes), word = message(k + 1, 8);
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

TEST_F(MpiHosts, AllReduceInOneShot) {
  const collectives::Collectives collectives(world());
  constexpr std::int64_t elements = 1 << 21;
  for (const ReduceAlgorithm algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
    collectives::Collective sum = collectives.allreduce({.elements = elements, .algorithm = algorithm});
    std::vector<float> array(static_cast<std::size_t>(elements));
    for (int k = 0; k < repeats; ++k) {
      float expected = 0;
      for (int r = 0; r < world().size(); ++r) expected += static_cast<float>(r + k);
      for (float& value : array) value = static_cast<float>(world().rank() + k);
      const auto bytes = std::as_writable_bytes(std::span(array));
      sum.run(bytes, bytes);
      EXPECT_EQ(array, std::vector<float>(array.size(), expected));
    }
  }
}

// Between hosts, short contributions follow the header in its message.
TEST_F(MpiHosts, AllReduceWithTheHeader) {
  const collectives::Collectives collectives(world());
  const int ranks = world().size();
  const auto sum_works = [&](std::int64_t elements) {
    SCOPED_TRACE(elements);
    collectives::Collective sum = collectives.allreduce({.elements = elements, .algorithm = ReduceAlgorithm::one_shot});
    std::vector<float> array(static_cast<std::size_t>(elements));
    for (int k = 0; k < repeats; ++k) {
      std::vector<float> expected(array.size());
      for (std::size_t i = 0; i < array.size(); ++i) {
        const auto term = static_cast<float>(i % 1000 + static_cast<std::size_t>(k));
        array[i] = static_cast<float>(world().rank() + 1) * term;
        expected[i] = static_cast<float>(ranks * (ranks + 1) / 2) * term;
      }
      const auto bytes = std::as_writable_bytes(std::span(array));
      sum.run(bytes, bytes);
      EXPECT_EQ(array, expected);
    }
  };
  // Around the lengths of a cache line's payload, of all lines in shared memory and of the longest message.
  for (const std::int64_t elements : {1, 8, 9, 50, 51, 4095, 4096, 4097}) sum_works(elements);
  for (const std::int64_t other : {1, 2000, 100000}) {
    const std::int64_t elements = world().rank() == 2 ? other : 100;
    std::vector<float> array(static_cast<std::size_t>(elements));
    const auto bytes = std::as_writable_bytes(std::span(array));
    EXPECT_THROW(
        collectives.allreduce({.elements = elements, .algorithm = ReduceAlgorithm::one_shot}).run(bytes, bytes),
        Mismatch);
    sum_works(4096);
    sum_works(5000);
  }
}

// Operations of groups with a relay (collectives/relay.h).
class MpiRelay : public MpiHosts {
 protected:
  void SetUp() override {
    MpiHosts::SetUp();
    if (world().size() != 4 || !world().shares_memory(world().rank() ^ 1)) GTEST_SKIP() << "for two ranks a host";
  }
};

// Numbers whose sum depends on the order.
std::vector<float> numbers_of(int rank, std::int64_t elements, int k) {
  std::vector<float> made(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i] = (rank % 2 == 0 ? 1.0F : -1.0F) * 1e8F / static_cast<float>(1 + (i + static_cast<std::size_t>(k)) % 97) +
              static_cast<float>(rank + 1);
  }
  return made;
}

std::vector<float> sum_of(std::int64_t elements, int k, bool by_host) {
  std::vector<float> sum = numbers_of(0, elements, k);
  std::vector<float> other = numbers_of(2, elements, k);
  const std::vector<float> one = numbers_of(1, elements, k);
  const std::vector<float> three = numbers_of(3, elements, k);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += one[i];
    sum[i] = by_host ? sum[i] + (other[i] + three[i]) : (sum[i] + other[i]) + three[i];
  }
  return sum;
}

TEST_F(MpiRelay, SumsInTheOrderThatIsDocumented) {
  const collectives::Collectives collectives(world());
  for (const std::int64_t elements : {0, 1, 16, 512, 513, 5000, 65536, 65537, 300000}) {
    SCOPED_TRACE(elements);
    collectives::Collective sum = collectives.allreduce({.elements = elements});
    const bool by_host = elements > 512;
    EXPECT_EQ(sum.algorithm() == ReduceAlgorithm::by_host, by_host);
    for (int k = 0; k < repeats; ++k) {
      const std::vector<float> expected = sum_of(elements, k, by_host);
      std::vector<float> array = numbers_of(world().rank(), elements, k);
      std::vector<float> result(array.size());
      sum.run(std::as_bytes(std::span(array)), std::as_writable_bytes(std::span(result)));
      EXPECT_EQ(result, expected);
      const auto bytes = std::as_writable_bytes(std::span(array));
      sum.run(bytes, bytes);
      EXPECT_EQ(array, expected);
    }
  }
}

TEST_F(MpiRelay, SumsSeveralArrays) {
  const collectives::Collectives collectives(world());
  for (const std::int64_t elements : {40, 4000}) {
    collectives::Collective sum = collectives.allreduce({.elements = elements});
    std::vector<float> array = numbers_of(world().rank(), elements, 0);
    std::vector<collectives::Part> parts;
    std::int64_t at = 0;
    for (const std::int64_t length : {std::int64_t{7}, std::int64_t{0}, elements - 7}) {
      auto* const begin = reinterpret_cast<std::byte*>(array.data() + at);
      parts.push_back({begin, begin, length});
      at += length;
    }
    sum.start(parts);
    sum.finish();
    EXPECT_EQ(array, sum_of(elements, 0, elements > 512));
  }
}

// Whichever rank comes last to start() or finish().
TEST_F(MpiRelay, DoesNotWaitInStart) {
  const collectives::Collectives collectives(world());
  collectives::Collective sum = collectives.allreduce({.elements = 100});
  for (int late = 0; late < world().size(); ++late) {
    for (const bool at_start : {true, false}) {
      std::vector<float> array = numbers_of(world().rank(), 100, late);
      const auto bytes = std::as_writable_bytes(std::span(array));
      if (world().rank() == late && at_start) usleep(20000);
      sum.start(bytes, bytes);
      if (world().rank() == late && !at_start) usleep(20000);
      sum.finish();
      EXPECT_EQ(array, sum_of(100, late, false));
    }
  }
}

TEST_F(MpiRelay, RunsOperationsOfAllKinds) {
  const collectives::Collectives collectives(world());
  const int rank = world().rank();
  const std::vector<std::int64_t> lengths = {3000, 0, 5, 70000};
  const std::int64_t own = lengths[static_cast<std::size_t>(rank)];
  std::vector<std::byte> all;
  for (int r = 0; r < 4; ++r) {
    const auto block = message(r, lengths[static_cast<std::size_t>(r)]);
    all.insert(all.end(), block.begin(), block.end());
  }
  for (int k = 0; k < repeats; ++k) {
    std::vector<std::byte> gathered(all.size());
    collectives.allgather(lengths).run(message(rank, own), gathered);
    EXPECT_EQ(gathered, all);
    collectives.barrier();
    std::vector<std::byte> cast = message(rank, 500);
    collectives.broadcast(500, k).run(cast, cast);
    EXPECT_EQ(cast, message(k, 500));
    std::vector<float> blocks = numbers_of(rank, 4 * 600, k);
    std::vector<float> block(600);
    collectives.reduce_scatter({.elements = 600})
        .run(std::as_bytes(std::span(blocks)), std::as_writable_bytes(std::span(block)));
    const std::vector<float> sums = sum_of(4 * 600, k, false);
    EXPECT_TRUE(std::equal(block.begin(), block.end(), sums.begin() + 600 * rank));
    const std::vector<std::int64_t> to(4, 100 + rank);
    const std::vector<std::int64_t> from = {100, 101, 102, 103};
    std::vector<std::byte> received(406);
    collectives.all_to_all(to, from).run(message(rank, 4 * (100 + rank)), received);
    for (int r = 0, at = 0; r < 4; at += 100 + r, ++r) {
      const auto theirs = message(r, 4 * (100 + r));
      EXPECT_EQ(std::memcmp(received.data() + at, theirs.data() + (100 + r) * rank, static_cast<std::size_t>(100 + r)),
                0);
    }
  }
}

// Longer ones send each number once a host, and sum those of a host first.
TEST_F(MpiRelay, RunsLongOperationsByHost) {
  const collectives::Collectives collectives(world());
  const int rank = world().rank();
  for (const std::int64_t block : {std::int64_t{20001}, std::int64_t{300000}}) {
    SCOPED_TRACE(block);
    std::vector<std::byte> all;
    for (int r = 0; r < 4; ++r) {
      const auto part = message(r, block);
      all.insert(all.end(), part.begin(), part.end());
    }
    collectives::Collective gather = collectives.allgather(block);
    collectives::Collective scatter = collectives.reduce_scatter({.elements = block});
    EXPECT_EQ(scatter.algorithm(), ReduceAlgorithm::by_host);
    for (int k = 0; k < repeats; ++k) {
      std::vector<std::byte> gathered(all.size());
      gather.run(message(rank, block), gathered);
      EXPECT_EQ(gathered, all);
      std::ranges::fill(gathered, std::byte{0});
      const auto own = std::span(gathered).subspan(static_cast<std::size_t>(rank * block), all.size() / 4);
      std::ranges::copy(message(rank, block), own.begin());
      gather.run(own, gathered);
      EXPECT_EQ(gathered, all);
      std::vector<std::byte> cast = message(rank, 4 * block - k), received(cast.size());
      collectives.broadcast(4 * block - k, k).run(cast, received);
      EXPECT_EQ(received, message(k, 4 * block - k));
      collectives.broadcast(4 * block - k, k).run(cast, cast);
      EXPECT_EQ(cast, received);
      std::vector<float> blocks = numbers_of(rank, 4 * block, k);
      std::vector<float> sums(static_cast<std::size_t>(block));
      scatter.run(std::as_bytes(std::span(blocks)), std::as_writable_bytes(std::span(sums)));
      const std::vector<float> expected = sum_of(4 * block, k, true);
      EXPECT_TRUE(std::equal(sums.begin(), sums.end(), expected.begin() + block * rank));
      const auto inside = std::span(blocks).subspan(static_cast<std::size_t>(rank * block), sums.size());
      scatter.run(std::as_bytes(std::span(blocks)), std::as_writable_bytes(inside));
      EXPECT_TRUE(std::ranges::equal(inside, sums));
    }
  }
  collectives::Collective in_order =
      collectives.reduce_scatter({.elements = 30000, .algorithm = ReduceAlgorithm::two_shot});
  std::vector<float> blocks = numbers_of(rank, 4 * 30000, 0);
  std::vector<float> sums(30000);
  in_order.run(std::as_bytes(std::span(blocks)), std::as_writable_bytes(std::span(sums)));
  const std::vector<float> expected = sum_of(4 * 30000, 0, false);
  EXPECT_TRUE(std::equal(sums.begin(), sums.end(), expected.begin() + 30000 * rank));
}

// Every rank throws, and names a rank that runs something else than it does itself.
TEST_F(MpiRelay, EveryRankSeesAMismatch) {
  const collectives::Collectives collectives(world());
  const int rank = world().rank();
  const auto sum_works = [&] {
    std::vector<float> array = numbers_of(rank, 300, 0);
    const auto bytes = std::as_writable_bytes(std::span(array));
    collectives.allreduce({.elements = 300}).run(bytes, bytes);
    EXPECT_EQ(array, sum_of(300, 0, false));
  };
  using Run = std::function<void(bool odd)>;
  std::vector<std::byte> from(200000), to(200000);
  const auto run = [&](collectives::Collective operation) {
    operation.run(std::span(from).first(static_cast<std::size_t>(operation.source_bytes())),
                  std::span(to).first(static_cast<std::size_t>(operation.result_bytes())));
  };
  const std::vector<Run> cases = {
      [&](bool odd) { run(collectives.allreduce({.elements = odd ? 11 : 10})); },
      [&](bool odd) { run(collectives.allreduce({.elements = odd ? 900 : 10})); },
      [&](bool odd) { odd ? collectives.barrier() : run(collectives.allreduce({.elements = 900})); },
      [&](bool odd) { odd ? collectives.barrier() : run(collectives.allgather(200)); },
      [&](bool odd) { run(collectives.broadcast(100, odd ? 1 : 0)); },
      [&](bool odd) { run(collectives.allgather(odd ? 40000 : 40001)); },
      [&](bool odd) { run(collectives.broadcast(odd ? 100 : 100000, 0)); },
  };
  for (std::size_t one = 0; one < cases.size(); ++one) {
    for (int odd = 0; odd < world().size(); ++odd) {
      SCOPED_TRACE("case " + std::to_string(one) + ", rank " + std::to_string(odd));
      try {
        cases[one](rank == odd);
        ADD_FAILURE() << "no mismatch";
      } catch (const Mismatch& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("rank " + std::to_string(rank) + " runs"), std::string::npos) << text;
        if (rank != odd) {
          EXPECT_NE(text.find("but rank " + std::to_string(odd) + " runs"), std::string::npos) << text;
        }
      }
      sum_works();
    }
  }
}

TEST_F(MpiRelay, NamesTheLengthsThatDiffer) {
  const collectives::Collectives collectives(world());
  const int rank = world().rank();
  for (int odd = 0; odd < 4; ++odd) {
    std::vector<std::int64_t> to(4, 8);
    const std::vector<std::int64_t> from(4, 8);
    const int other = (odd + 2) % 4;
    if (rank == odd) to[static_cast<std::size_t>(other)] = 24;
    std::vector<std::byte> source(rank == odd ? 48 : 32), result(32);
    try {
      collectives.all_to_all(to, from).run(source, result);
      ADD_FAILURE() << "no mismatch";
    } catch (const Mismatch& error) {
      const std::string expected =
          "rank " + std::to_string(odd) + " sends 24 bytes to rank " + std::to_string(other) + ", which expects 8";
      const bool sees = rank == odd || rank == other;
      EXPECT_NE(std::string(error.what()).find(sees ? expected : "see their errors"), std::string::npos)
          << error.what();
    }
    collectives.barrier();
  }
}

TEST(MpiRelayLimits, KeepTheMemoryOfARank) {
  using collectives::detail::relay_limits;
  constexpr std::int64_t kib = 1 << 10;
  EXPECT_EQ(relay_limits(2, 2).contribution, 256 * kib);
  EXPECT_EQ(relay_limits(2, 8).contribution, 128 * kib);
  EXPECT_EQ(relay_limits(4, 2).contribution, 32 * kib);
  EXPECT_EQ(relay_limits(1000, 2).contribution, 1 * kib);
  for (const std::int64_t hosts : {2, 3, 10, 100, 1000}) {
    for (const std::int64_t ranks : {2, 3, 64, 256}) {
      const auto limits = relay_limits(hosts, ranks);
      EXPECT_LE(limits.contribution, limits.of_host);
      EXPECT_LE(2 * (ranks - 1) * limits.contribution, 2048 * kib);
      EXPECT_LE(2 * (hosts - 1) * limits.of_host, 2048 * kib);
    }
  }
}

// A rank without memory says so in place of its header; all others see the refusal, whatever else they see.
TEST_F(MpiRelay, PassesARefusalOn) {
  using namespace collectives::detail;
  const std::vector<std::vector<int>> hosts = {{0, 1}, {2, 3}};
  for (int refuses = 0; refuses < 4; ++refuses) {
    Relay relay(world(), hosts, {});
    Operation operation;
    operation.header = {.kind = Header::Kind::allgather, .elements = world().rank() == 3 ? 5 : 4};
    if (world().rank() == refuses) {
      relay.refuse(operation);
    } else {
      relay.start(operation, nullptr);
      const Summary all = relay.finish(nullptr);
      EXPECT_EQ(all.other.kind, Header::Kind::refused);
      EXPECT_EQ(all.other_rank, refuses);
    }
    world().barrier();
  }
}

}  // namespace
}  // namespace onehop
