// The MPI candidates of the benchmarks move the right bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "bench/native/mpi/peers.h"
#include "onehop/patterns.h"
#include "tests/mpi/world.h"
#include "tests/support/naive_execute.h"

namespace onehop::bench {
namespace {

using testing::world;

std::byte value(int rank, int number, std::size_t i) {
  return static_cast<std::byte>(
      (static_cast<std::size_t>(rank) * 89 + static_cast<std::size_t>(number) * 41 + i * 11 + (i >> 8)) & 0xff);
}

void fill(std::span<std::byte> bytes, int rank, int number) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = value(rank, number, i);
}

void expect(std::span<const std::byte> bytes, std::size_t size, int rank, int number) {
  ASSERT_EQ(bytes.size(), size);
  for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], value(rank, number, i)) << "byte " << i;
}

TEST(MpiPeers, SendOneMessageToAndFro) {
  if (world().size() != 2) GTEST_SKIP() << "for two ranks";
  for (const std::int64_t bytes : {8, 0, 1000, 100000}) {
    const auto peers = mpi_message_peers(world(), bytes, 1, false);
    ASSERT_GE(peers.size(), 1U);
    // Two rounds, so that candidates run after each other's leftovers.
    for (int round = 0; round < 2; ++round) {
      for (const auto& peer : peers) {
        SCOPED_TRACE(std::string(peer->name()) + ", " + std::to_string(bytes) + " bytes");
        for (int k = 0; k < 10; ++k) {
          const auto send = [&] {
            fill(peer->source(0), world().rank(), k);
            peer->send();
          };
          if (world().rank() == 0) send();
          peer->receive();
          expect(peer->result(0), static_cast<std::size_t>(bytes), 1 - world().rank(), k);
          if (world().rank() == 1) send();
        }
      }
    }
  }
}

TEST(MpiPeers, ExchangeManyMessages) {
  if (world().size() != 2) GTEST_SKIP() << "for two ranks";
  for (const int messages : {10, 1, 3}) {
    for (const std::int64_t bytes : {64, 0, 1000, 70000}) {
      for (const auto& peer : mpi_message_peers(world(), bytes, messages, true)) {
        SCOPED_TRACE(std::string(peer->name()) + ", " + std::to_string(messages) + " of " + std::to_string(bytes) +
                     " bytes");
        for (int k = 0; k < 10; ++k) {
          for (int m = 0; m < messages; ++m) fill(peer->source(m), world().rank(), k * 16 + m);
          peer->send();
          peer->receive();
          for (int m = 0; m < messages; ++m)
            expect(peer->result(m), static_cast<std::size_t>(bytes), 1 - world().rank(), k * 16 + m);
        }
      }
    }
  }
}

HaloSpec halo_over(int dimension, std::int64_t element_bytes) {
  HaloSpec spec;
  spec.grid = {1, 1, 1};
  spec.grid[static_cast<std::size_t>(dimension)] = world().size();
  spec.extents = {6, 5, 4};
  spec.extents[static_cast<std::size_t>(dimension)] *= world().size();
  spec.widths = {{1, 1}, {1, 2}, {2, 1}};
  spec.periodic = {true, true, true};
  spec.element_bytes = {element_bytes, 8};
  return spec;
}

void check_halo(HaloPeer& peer, const Schedule& schedule) {
  testing::Memory expected = testing::allocate(schedule);
  for (std::size_t r = 0; r < expected.size(); ++r) {
    for (std::size_t a = 0; a < expected[r].size(); ++a) fill(expected[r][a], static_cast<int>(r), static_cast<int>(a));
  }
  auto mine = expected[static_cast<std::size_t>(world().rank())];
  std::vector<std::span<std::byte>> arrays(mine.begin(), mine.end());
  peer.prepare(schedule.part(world().rank()), arrays);
  for (int k = 0; k < 3; ++k) {
    peer.run();
    testing::naive_execute(schedule, expected);
    ASSERT_EQ(mine, expected[static_cast<std::size_t>(world().rank())]) << "run " << k;
    for (auto& rank : expected) rank[0][rank[0].size() / 2] ^= std::byte{0xff};
    mine[0][mine[0].size() / 2] ^= std::byte{0xff};
  }
}

TEST(MpiPeers, ExchangeHalos) {
  const auto peers = mpi_halo_peers(world());
  ASSERT_EQ(peers.size(), 7U);
  for (const auto& peer : peers) {
    for (int dimension = 0; dimension < 3; ++dimension) {
      for (const std::int64_t element_bytes : {8, 4, 24, 1}) {
        SCOPED_TRACE(std::string(peer->name()) + ", split dimension " + std::to_string(dimension) + ", elements of " +
                     std::to_string(element_bytes) + " bytes");
        const Schedule schedule = halo(halo_over(dimension, element_bytes));
        check_halo(*peer, schedule);
      }
    }
  }
}

TEST(MpiPeers, AreLeftOutWhereTheRanksAreOthers) {
  EXPECT_EQ(why_no_mpi_peers(world()), "");
  if (world().size() == 1) return;
  const Group backwards = world().split(0, -world().rank());
  EXPECT_TRUE(mpi_halo_peers(backwards).empty());
  EXPECT_NE(why_no_mpi_peers(backwards).find("rank 0 of this group is rank "), std::string::npos);
  const Group half = world().split(world().rank() % 2, 0);
  EXPECT_TRUE(mpi_halo_peers(half).empty());
  EXPECT_NE(why_no_mpi_peers(half).find("MPI runs " + std::to_string(world().size())), std::string::npos);
}

TEST(MpiPeers, SumOverAllRanks) {
  const auto all = MpiWorld::make();
  const int n = world().size();
  double sum = world().rank() + 0.5;
  all->allreduce_sum({&sum, 1});
  EXPECT_EQ(sum, n * (n - 1) / 2.0 + n * 0.5);
  EXPECT_FALSE(all->version().empty());
}

}  // namespace
}  // namespace onehop::bench
