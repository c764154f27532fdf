// Collective operations of several hosts, whose short ones go through a relay (collectives/relay.h). All lengths and
// types are in tests/hosts/collectives_program.py.
#include "collectives/relay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "onehop/collectives/collectives.h"
#include "onehop/error.h"
#include "tests/mpi/hosts.h"

namespace onehop {
namespace {

using testing::MpiHosts;
using testing::world;

constexpr int repeats = 3;

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
